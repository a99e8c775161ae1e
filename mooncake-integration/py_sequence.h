// Python sequences as C++ vectors, read without an intermediate object an element.
//
// Thread-safety: needs the interpreter lock. Errors: the usual Python exceptions (TypeError,
// OverflowError).
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mooncake::integration {

// The elements of a list, a tuple or anything that can be iterated, held on their own: what Python
// code does to the list meanwhile, in another thread or in an element's __index__, changes nothing
// here.
// Errors: TypeError for what cannot be iterated, and for a str or bytes, which is one thing where
// several are wanted.
class FastSequence {
 public:
  explicit FastSequence(pybind11::handle object) {
    if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr())) {
      throw pybind11::type_error("expected a sequence such as a list, not one " +
                                 std::string(Py_TYPE(object.ptr())->tp_name));
    }
    held_ = pybind11::reinterpret_steal<pybind11::object>(PySequence_Tuple(object.ptr()));
    if (!held_) {
      throw pybind11::error_already_set();
    }
  }
  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(PyTuple_GET_SIZE(held_.ptr()));
  }
  [[nodiscard]] PyObject* operator[](std::size_t index) const {
    return PyTuple_GET_ITEM(held_.ptr(), static_cast<Py_ssize_t>(index));
  }

 private:
  pybind11::object held_;
};

// Addresses, offsets or lengths.
inline std::uint64_t ToU64(PyObject* object) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(object);
  if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) [[unlikely]] {
    PyErr_Clear();
    // Numbers of numpy and the like.
    const auto number = pybind11::reinterpret_steal<pybind11::object>(PyNumber_Index(object));
    if (!number) {
      throw pybind11::error_already_set();
    }
    const unsigned long long again = PyLong_AsUnsignedLongLong(number.ptr());
    if (again == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) {
      throw pybind11::error_already_set();
    }
    return again;
  }
  return value;
}

// An address given by Python.
inline std::byte* ToPointer(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

inline std::vector<std::uint64_t> ToU64Vector(pybind11::handle object) {
  const FastSequence sequence(object);
  std::vector<std::uint64_t> values(sequence.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = ToU64(sequence[i]);
  }
  return values;
}

}  // namespace mooncake::integration
