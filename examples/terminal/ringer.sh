# Rings a bell when it has heard the whole of its order, whose last line speaks of the key.
stty -echo
echo "The ringer is here."
while IFS= read -r line; do
    case $line in
    "The same key"*)
        echo "Ding, dong."
        echo '<<<ODEI:RESULT:{"status":"resolved","summary":"The bell was rung"}>>>'
        ;;
    esac
done
