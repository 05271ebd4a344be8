# shellcheck shell=bash
# gcc compiles C and C++ to the same code

prepare() {
    need gcc
    need g++
}

program() { # NUMBER
    cat <<'END'
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <regex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>
template <int N> struct Sum { static constexpr long value = N + Sum<N - 1>::value; };
template <> struct Sum<0> { static constexpr long value = 0; };
int main() {
    std::map<std::string, std::vector<std::tuple<int, double>>> all;
END
    echo "for (int i = 0; i < 1000 + $1; i++) all[std::to_string(i % 97)].emplace_back(i, i * 0.5);"
    echo "std::cout << all.size() << Sum<800>::value << std::regex_replace(std::string(\"a$1\"), std::regex(\"[a-c]\"), \"x\") << std::endl; }"
}

work() { # FUNCTIONS PROGRAMS
    local i
    {
        echo '#include <stdio.h>'
        for i in $(seq "$1"); do echo "static long f$i(long x) { long a[64]; for (int i = 0; i < 64; i++) a[i] = x * i + (x >> 3) % $i; for (int i = 1; i < 64; i++) a[i] ^= a[i - 1]; return a[63]; }"; done
        echo 'int main(void) { long x = 1;'
        for i in $(seq "$1"); do echo "x += f$i(x);"; done
        echo 'return printf("%ld", x) < 0; }'
    } >large.c
    gcc -O2 -ftree-vectorize -S large.c -o large.s && md5sum large.s && gcc large.s -o large && ./large
    for i in $(seq "$2"); do
        program "$i" >"$i.cpp"
        g++ -O1 -std=c++17 -S "$i.cpp" -o "$i.s" && md5sum "$i.s" && g++ -std=c++17 -O1 -flto "$i.cpp" -o "$i" && "./$i"
    done
}

short() { work 60 1; }
whole() { work 5000 30; }
