# An agent in a terminal: says what it hears, and does what some words ask for.
stty -echo
printf '\033[1m%s\033[0m is ready in process %s\n' "$1" "$$"
while IFS= read -r line; do
    printf '\033[32m>\033[0m %s\n' "$line"
    case $line in
    pass) echo '<<<ODEI:HANDOFF:{"to":"anchor","summary":"the second leg"}>>>' ;;
    lure) printf '%s\n' '<<<ODEI:HANDOFF:{"to":"anchor","summary":"<img src=x onerror=\"window.hurt=3\"> safe \u202egnp.exe"}>>>' ;;
    finish) echo '<<<ODEI:RESULT:{"status":"resolved","summary":"over the line"}>>>' ;;
    die) kill -9 $$ ;;
    hostile)
        printf '\033]0;<img src=x onerror=alert(1)>\007'
        printf '\033]52;c;c3RvbGVu\007'
        printf '\033]8;;javascript:alert(2)\007click me\033]8;;\007\n'
        printf '<script>window.hurt=1</script><img src=x onerror="window.hurt=2">\n'
        printf 'safe \342\200\256gnp.exe\342\200\254 name\n'
        printf '\033[c\033[6n\033[?1000h\033]10;?\007\033P$qm\033\\'
        printf '\033[5i\033[20t\033[21t'
        echo 'hostile is over'
        ;;
    esac
done
