# The driver of `make sanitize`: the same sources as the module, without Python, under both sanitizers.
add_executable(native_soak ${NATIVE}/sanitize/main.cpp ${NATIVE}/sanitize/soak_flat.cpp ${NATIVE}/sanitize/fuzz_packed.cpp
  ${CORE_SOURCES})
target_compile_options(native_soak PRIVATE -O1 -g -Wall -Wextra -fno-omit-frame-pointer -fno-sanitize-recover=all
  -fsanitize=address,undefined)
target_link_options(native_soak PRIVATE -fsanitize=address,undefined)
target_link_libraries(native_soak PRIVATE Threads::Threads)
