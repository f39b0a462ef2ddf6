// Checks of the unit tests. A failed check prints file, line, expressions and values, and ends the process with code 1.
#pragma once

#include <cstdlib>
#include <iostream>

namespace mercast {

template <typename Actual, typename Expected>
void check_equal(const Actual& actual, const Expected& expected, const char* what, const char* wanted, const char* file,
                 int line) {
    if (actual == expected) return;
    std::cerr << file << ':' << line << ": " << what << " is " << +actual << ", not " << wanted << " = " << +expected
              << std::endl;
    std::exit(1);
}

// The unit tests, one function for each file.
void test_grid();
void test_storage();
void test_lists();

}  // namespace mercast

#define CHECK_EQUAL(actual, expected) \
    ::mercast::check_equal((actual), (expected), #actual, #expected, __FILE__, __LINE__)
#define CHECK(condition) \
    ::mercast::check_equal(static_cast<bool>(condition), true, #condition, "true", __FILE__, __LINE__)
