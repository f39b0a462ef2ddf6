// The native scan for Python. It refuses anything that is not plain, as the native A-Tree does.
#include <nanobind/nanobind.h>

#include <vector>

#include "core/message_pack.hpp"
#include "python/bindings.hpp"
#include "python/calls.hpp"
#include "python/expression_reading.hpp"
#include "python/ids.hpp"
#include "python/reading.hpp"
#include "scan/expression_scan.hpp"

namespace mercast::python {
namespace {

class BoundScan {
  public:
    BoundScan() { scan_.set_verifier(pattern_occurs); }

    bool add(std::int64_t id, nb::handle expression) {
        require_no_scan_running();
        if (!reader_.read(expression.ptr())) return false;
        scan_.add(id, reader_.form());
        return true;
    }

    void remove(std::int64_t id) {
        require_no_scan_running();
        scan_.remove(id);
    }

    nb::object match(nb::handle publication) {
        require_no_scan_running();
        const nb::object kept = kept_publication(publication, scan_.predicates().has_patterns());
        if (!read_publication(kept.ptr(), scan_.vocabulary(), names_, event_)) return nb::none();
        return matched();
    }

    nb::object match_packed(nb::bytes attributes) {
        require_no_scan_running();
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(attributes.c_str());
        if (!read_message_pack(bytes, attributes.size(), scan_.vocabulary(), event_)) return nb::none();
        return matched();
    }

    std::size_t bytes() const { return scan_.bytes(); }

  private:
    nb::object matched() {
        std::vector<std::int64_t> ids;
        const Running running(is_running_);
        scan_.match(event_, ids);
        return as_ids(std::move(ids));
    }

    // Patterns are verified in Python, where another thread may use the same scan.
    struct Running {
        explicit Running(bool& flag) : flag(flag) { flag = true; }
        ~Running() { flag = false; }
        bool& flag;
    };

    void require_no_scan_running() const {
        if (is_running_) throw std::runtime_error("another thread uses this scan");
    }

    ExpressionScan scan_;
    AttributeNames names_;
    ExpressionReader reader_;
    Event event_;
    bool is_running_ = false;
};

}  // namespace

void bind_expression_scan(nb::module_& module) {
    nb::class_<BoundScan>(module, "ExpressionScan")
        .def(nb::init<>())
        .def("add", &BoundScan::add, nb::arg("id"), nb::arg("expression"))
        .def("remove", &BoundScan::remove, nb::arg("id"))
        .def("match", &BoundScan::match, nb::arg("publication"))
        .def("match_packed", &BoundScan::match_packed, nb::arg("attributes"))
        .def("bytes", &BoundScan::bytes);
}

}  // namespace mercast::python
