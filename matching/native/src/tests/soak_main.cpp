// native_soak [SEED [OPERATIONS [FUZZ_ROUNDS]]]: exit code 1 if an answer was wrong. The sanitizers end the process
// themselves.
#include <cstdio>
#include <cstdlib>

#include "core/vectors.hpp"
#include "tests/soak.hpp"

int main(int count, char** arguments) {
    const auto number = [&](int position, std::uint64_t otherwise) {
        return count > position ? std::strtoull(arguments[position], nullptr, 10) : otherwise;
    };
    const std::uint64_t seed = number(1, 1), operations = number(2, 1'000'000), rounds = number(3, 300'000);
    // Half of the operations with vector instructions, if the processor has them, half without.
    int wrong_flat = mercast::soak_flat(seed, operations / 2);
    mercast::forbid_vectors(true);
    wrong_flat += mercast::soak_flat(seed + 1, operations - operations / 2);
    mercast::forbid_vectors(false);
    std::printf("flat: %llu operations, %d wrong answers\n", static_cast<unsigned long long>(operations), wrong_flat);
    constexpr std::uint32_t kLargeSize = 100'000;
    const int wrong_large = mercast::soak_large_flat(seed, kLargeSize);
    std::printf("flat: %u subscriptions at once, %d wrong answers\n", kLargeSize, wrong_large);
    const int wrong_a_tree = mercast::soak_a_tree(seed, operations);
    std::printf("a-tree: %llu operations, %d wrong answers\n", static_cast<unsigned long long>(operations),
                wrong_a_tree);
    const int wrong_packed = mercast::fuzz_packed(seed, rounds);
    std::printf("packed: %llu inputs, %d wrong answers\n", static_cast<unsigned long long>(rounds), wrong_packed);
    return wrong_flat + wrong_large + wrong_a_tree + wrong_packed == 0 ? 0 : 1;
}
