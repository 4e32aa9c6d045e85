# Says what is in said/NAME.N when it is called the Nth time, and not before hold/NAME.N is gone.
name=$1
cat > /dev/null
mkdir -p .called
n=$(($(cat ".called/$name" 2> /dev/null || echo 0) + 1))
echo "$n" > ".called/$name"
while [ -e "hold/$name.$n" ]; do sleep 0.05; done
cat "said/$name.$n"
