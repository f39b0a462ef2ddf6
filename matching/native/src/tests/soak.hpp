// Long random runs of the native core, built with sanitizers. Each returns the number of wrong answers.
#pragma once

#include <cstdint>

namespace mercast {

// Its own generator, so that a seed gives the same run with every standard library.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 1) {}

    std::uint64_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ * 0x2545f4914f6cdd1dU;
    }

    std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>((next() >> 32) * limit >> 32); }

  private:
    std::uint64_t state_;
};

// Adds, removes and matches in waves, and compares with a plain scan that evaluates each predicate separately.
int soak_flat(std::uint64_t seed, std::uint64_t operations);
// Adds this many, removes most, adds them again and removes all.
int soak_large_flat(std::uint64_t seed, std::uint32_t size);

// The same with arbitrary expressions, for the A-Tree and the scan of expressions.
int soak_a_tree(std::uint64_t seed, std::uint64_t operations);

// Gives the MessagePack reader valid, mutated and random bytes, and matches the publications that it accepts.
int fuzz_packed(std::uint64_t seed, std::uint64_t rounds);

}  // namespace mercast
