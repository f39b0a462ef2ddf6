// native_unit: unit tests of the native core's parts. Exit code 1 if a check failed.
#include <cstdio>

#include "core/vectors.hpp"
#include "tests/check.hpp"

int main() {
    mercast::test_grid();
    mercast::forbid_vectors(true);
    mercast::test_grid();
    mercast::forbid_vectors(false);
    std::puts("grid: passed");
    mercast::test_storage();
    std::puts("storage: passed");
    mercast::test_lists();
    std::puts("lists: passed");
}
