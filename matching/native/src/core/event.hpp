// A publication's attributes as an index reads them. Built from a MessagePack map, or by the bindings from a dict.
//
// Only attributes in the index's vocabulary are kept. Texts are views of bytes that must outlive the event.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/interning.hpp"
#include "core/values.hpp"

namespace mercast {

struct Field {
    std::uint32_t attribute = Interner::kUnknown;
    TypeClass type = TypeClass::Number;
    bool truth = false;
    std::uint32_t text_number = Interner::kUnknown;  // kUnknown for a text that no subscription mentions
    Number number;
    std::string_view text;
};

class Event {
  public:
    // Empties the event and prepares it for the vocabulary's attributes.
    void begin(const Vocabulary& vocabulary) {
        for (const Field& field : fields_) positions_[field.attribute] = 0;
        fields_.clear();
        if (positions_.size() < vocabulary.attributes.bound()) positions_.resize(vocabulary.attributes.bound(), 0);
        vocabulary_ = &vocabulary;
    }

    std::uint32_t attribute(std::string_view name) const { return vocabulary_->attributes.find(name); }

    // Each returns false if the attribute already has a value.
    bool add(std::uint32_t attribute, Number number) {
        Field* field = place(attribute, TypeClass::Number);
        if (field != nullptr) field->number = number;
        return field != nullptr;
    }

    bool add(std::uint32_t attribute, std::string_view text) {
        Field* field = place(attribute, TypeClass::Text);
        if (field == nullptr) return false;
        field->text = text;
        field->text_number = vocabulary_->texts.find(text);
        return true;
    }

    bool add_truth(std::uint32_t attribute, bool value) {
        Field* field = place(attribute, TypeClass::Truth);
        if (field != nullptr) field->truth = value;
        return field != nullptr;
    }

    const std::vector<Field>& fields() const { return fields_; }

    // The attribute's value, or nullptr if the publication lacks it.
    const Field* find(std::uint32_t attribute) const {
        if (attribute >= positions_.size() || positions_[attribute] == 0) return nullptr;
        return &fields_[positions_[attribute] - 1];
    }

  private:
    Field* place(std::uint32_t attribute, TypeClass type) {
        if (positions_[attribute] != 0) return nullptr;
        fields_.emplace_back();
        positions_[attribute] = static_cast<std::uint32_t>(fields_.size());
        Field& field = fields_.back();
        field.attribute = attribute;
        field.type = type;
        return &field;
    }

    std::vector<Field> fields_;
    std::vector<std::uint32_t> positions_;  // by attribute: 1 + the place in fields_
    const Vocabulary* vocabulary_ = nullptr;
};

}  // namespace mercast
