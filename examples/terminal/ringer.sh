# Rings the bell when it has read the whole prompt, whose last line is about the key.
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
