// Python texts and bytes-like objects as views, held for as long as C++ looks at them.
//
// Thread-safety: made and destroyed under the interpreter lock; what they show may be read without
// it.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "mooncake-integration/py_sequence.h"

namespace mooncake::integration {

// The memory of any bytes-like object. BufferError if it is not contiguous.
class BytesView {
 public:
  explicit BytesView(pybind11::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS) != 0) {
      throw pybind11::error_already_set();
    }
  }
  ~BytesView() { PyBuffer_Release(&view_); }
  BytesView(const BytesView&) = delete;
  BytesView& operator=(const BytesView&) = delete;

  [[nodiscard]] const std::byte* data() const { return static_cast<const std::byte*>(view_.buf); }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(view_.len); }
  [[nodiscard]] bool is_plain() const { return view_.ndim == 1 && view_.itemsize == 1; }

 private:
  Py_buffer view_{};
};

// A str in UTF-8, which Python keeps with the object. TypeError for anything else.
inline std::string_view ToText(PyObject* object) {
  Py_ssize_t length = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(object, &length);
  if (text == nullptr) {
    throw pybind11::error_already_set();
  }
  return {text, static_cast<std::size_t>(length)};
}

// A list of str, held while its texts are looked at.
class TextList {
 public:
  explicit TextList(pybind11::handle object) : sequence_(object), views_(sequence_.size()) {
    for (std::size_t i = 0; i < views_.size(); ++i) {
      views_[i] = ToText(sequence_[i]);
    }
  }
  [[nodiscard]] std::size_t size() const { return views_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t index) const { return views_[index]; }
  [[nodiscard]] std::span<const std::string_view> views() const { return views_; }

 private:
  FastSequence sequence_;
  std::vector<std::string_view> views_;
};

}  // namespace mooncake::integration
