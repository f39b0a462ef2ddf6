#include <memory>
#include <string>
#include <vector>

#include "core/message_pack.hpp"
#include "flat/flat_index.hpp"
#include "tests/soak.hpp"

namespace mercast {
namespace {

using Bytes = std::vector<std::uint8_t>;

void put_text(Bytes& bytes, const std::string& text) {
    bytes.push_back(static_cast<std::uint8_t>(0xa0 | text.size()));
    bytes.insert(bytes.end(), text.begin(), text.end());
}

void put_value(Random& random, Bytes& bytes) {
    static constexpr std::uint8_t kTags[] = {0xc2, 0xc3, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf,
                                             0xd0, 0xd1, 0xd2, 0xd3, 0xd9, 0xda, 0xdb};
    const std::uint32_t kind = random.below(8);
    if (kind < 3) {
        bytes.push_back(static_cast<std::uint8_t>(random.below(128)));
    } else if (kind < 5) {
        put_text(bytes, random.below(2) == 0 ? "x" : "caf\xc3\xa9");
    } else {
        bytes.push_back(kTags[random.below(15)]);
        for (std::uint32_t i = random.below(9); i != 0; --i)
            bytes.push_back(static_cast<std::uint8_t>(random.below(256)));
    }
}

Bytes random_input(Random& random) {
    Bytes bytes;
    const std::uint32_t pairs = random.below(5);
    bytes.push_back(static_cast<std::uint8_t>(0x80 | pairs));
    for (std::uint32_t i = 0; i < pairs; ++i) {
        put_text(bytes, std::string(1, static_cast<char>('a' + random.below(4))));
        put_value(random, bytes);
    }
    for (std::uint32_t i = random.below(3); i != 0 && !bytes.empty(); --i) {
        const std::uint32_t at = random.below(static_cast<std::uint32_t>(bytes.size()));
        switch (random.below(4)) {
            case 0: bytes[at] = static_cast<std::uint8_t>(random.below(256)); break;
            case 1: bytes.resize(at); break;
            case 2: bytes.insert(bytes.begin() + at, static_cast<std::uint8_t>(random.below(256))); break;
            default: bytes[at] ^= static_cast<std::uint8_t>(1U << random.below(8));
        }
    }
    return bytes;
}

void add(FlatIndex& index, std::int64_t id, const char* attribute, Operator op, TypeClass type, std::string_view text) {
    Conjunction conjunction;
    Operand operand(NumberOperand::of(id));
    operand.text = text;
    conjunction.operands.push_back(operand);
    Predicate predicate;
    predicate.attribute = attribute;
    predicate.op = op;
    predicate.type = type;
    predicate.operands = 1;
    conjunction.predicates.push_back(predicate);
    index.add(id, conjunction, std::nullopt);
}

// Whether the reader accepts a plain map, whatever it read before.
bool accepts_plain_map(const Vocabulary& vocabulary, Event& event) {
    Bytes bytes{0x83};
    put_text(bytes, "a");
    bytes.push_back(7);
    put_text(bytes, "b");
    put_text(bytes, "x");
    put_text(bytes, "zzz");
    bytes.push_back(0xc3);
    return read_message_pack(bytes.data(), bytes.size(), vocabulary, event) && event.fields().size() == 2;
}

}  // namespace

int fuzz_packed(std::uint64_t seed, std::uint64_t rounds) {
    Random random(seed);
    FlatIndex index;
    add(index, 5, "a", Operator::Lt, TypeClass::Number, "");
    add(index, 7, "a", Operator::Eq, TypeClass::Number, "");
    add(index, 8, "b", Operator::Eq, TypeClass::Text, "x");
    add(index, 9, "b", Operator::EndsWith, TypeClass::Text, "\xc3\xa9");
    Scratch scratch;
    Answer answer;
    int wrong = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const Bytes input = random_input(random);
        // A buffer of exactly this size, so that the sanitizer detects a read beyond it.
        const auto bytes = std::make_unique<std::uint8_t[]>(input.size());
        std::copy(input.begin(), input.end(), bytes.get());
        if (read_message_pack(bytes.get(), input.size(), index.vocabulary(), scratch.event)) {
            index.match(scratch, answer);
            for (const Field& field : scratch.event.fields()) {
                const auto* text = reinterpret_cast<const std::uint8_t*>(field.text.data());
                if (field.type == TypeClass::Text && !is_utf8(text, field.text.size())) ++wrong;
            }
        }
        if (round % 64 == 0 && !accepts_plain_map(index.vocabulary(), scratch.event)) ++wrong;
    }
    return wrong;
}

}  // namespace mercast
