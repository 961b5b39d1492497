// svmlight (LIBSVM) text, fed in blocks of bytes, to the arrays of a CSR matrix.
//
//     label [qid:n] index:value index:value ... [# comment]
//
// Every whole line ends with '\n' before it is looked at, so scanning for digits or blanks needs no other bound.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <locale>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace coordwise {

// An array that grows at its end without initialising, or (where the system can move pages) copying.
template <class T>
class Growing {
 public:
  Growing() { reserve(1); }
  ~Growing() { std::free(data_); }
  Growing(Growing&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Growing(const Growing&) = delete;
  Growing& operator=(const Growing&) = delete;
  Growing& operator=(Growing&&) = delete;

  void reserve(std::size_t more) {
    if (more <= capacity_ - size_) return;
    if (more > most - size_) throw std::bad_alloc();
    resize(size_ + more > capacity_ + capacity_ / 2 ? size_ + more : capacity_ + capacity_ / 2);
  }
  void put(T v) { data_[size_++] = v; }  // room must have been reserved
  void push(T v) {
    reserve(1);
    put(v);
  }
  void trim() { resize(size_ ? size_ : 1); }
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t room() const { return capacity_ - size_; }

 private:
  static constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / sizeof(T) / 2;

  void resize(std::size_t capacity) {
    void* moved = std::realloc(data_, capacity * sizeof(T));
    if (!moved) throw std::bad_alloc();
    data_ = static_cast<T*>(moved);
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

namespace text {

inline bool digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n'); }
inline bool ends(char c) { return blank(c) || c == '\n' || c == '#'; }

inline const char* skip(const char* at) {
  while (blank(*at)) ++at;
  return at;
}

enum class Number { good, malformed, not_finite, too_large };

// [at, end) is a decimal number that the short way does not cover; streams round correctly and can ignore the locale.
inline Number convert_by_stream(const char* at, const char* end, double& value) {
  std::istringstream in(std::string(at, end));
  in.imbue(std::locale::classic());
  in >> value;
  const double most = std::numeric_limits<double>::max();
  return in.fail() && (value >= most || value <= -most) ? Number::too_large : Number::good;
}

inline Number convert(const char* at, const char* end, double& value) {
#if defined(__cpp_lib_to_chars)
  const auto [stopped, error] = std::from_chars(*at == '+' ? at + 1 : at, end, value);
  if (error == std::errc() && stopped == end) return Number::good;
#endif
  return convert_by_stream(at, end, value);
}

inline bool same_word(const char* at, const char* end, const char* word) {
  for (; at < end && *word; ++at, ++word) {
    if ((*at | 32) != *word) return false;
  }
  return at == end && !*word;
}

// The decimal number at `at`, to the nearest double, and where it ends.
inline Number number(const char*& at, double& value) {
  static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const char* const begin = at;
  const bool negative = *at == '-';
  if (negative || *at == '+') ++at;
  std::uint64_t mantissa = 0;
  const char* const whole = at;
  for (; digit(*at); ++at) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*at - '0');
  std::int64_t digits = at - whole, exponent = 0;
  if (*at == '.') {
    const char* const fraction = ++at;
    for (; digit(*at); ++at) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*at - '0');
    exponent = fraction - at;
    digits -= exponent;
  }
  if (digits == 0) {
    const char* end = whole;
    while (!ends(*end)) ++end;
    for (const char* word : {"nan", "inf", "infinity"}) {
      if (same_word(whole, end, word)) return Number::not_finite;
    }
    return Number::malformed;
  }
  if (*at == 'e' || *at == 'E') {
    ++at;
    const bool down = *at == '-';
    if (down || *at == '+') ++at;
    if (!digit(*at)) return Number::malformed;
    std::int64_t power = 0;
    for (; digit(*at); ++at) power = power < 1'000'000 ? 10 * power + (*at - '0') : power;
    exponent += down ? -power : power;
  }
  if (!ends(*at)) return Number::malformed;
  // Both factors are exact, so the result is rounded once.
  if (digits <= 19 && mantissa < (std::uint64_t(1) << 53) && exponent >= -22 && exponent <= 22) {
    const double m = static_cast<double>(mantissa);
    const double v = exponent < 0 ? m / powers[-exponent] : m * powers[exponent];
    value = negative ? -v : v;
    return Number::good;
  }
  return convert(begin, at, value);
}

}  // namespace text

class SvmlightParser {
 public:
  // Indices outside lowest..highest are refused.
  SvmlightParser(std::int64_t lowest, std::int64_t highest) : lowest_(lowest), highest_(highest) { starts_.push(0); }

  void feed(const char* bytes, std::size_t size) {
    const char* const end = bytes + size;
    const char* at = bytes;
    if (!rest_.empty()) {
      const char* newline = find(at, end);
      if (!newline) {
        rest_.append(at, end);
        return;
      }
      rest_.append(at, newline + 1);
      lines(rest_.data(), rest_.data() + rest_.size());
      rest_.clear();
      at = newline + 1;
    }
    const char* last = end;
    while (last > at && last[-1] != '\n') --last;
    lines(at, last);
    rest_.assign(last, end);
  }

  // The last line may lack its newline.
  void finish() {
    if (!rest_.empty()) feed("\n", 1);
    values_.trim(), narrow_.trim(), wide_.trim(), starts_.trim(), labels_.trim();
  }

  bool is_wide() const { return is_wide_; }
  Growing<double>& values() { return values_; }
  Growing<std::int32_t>& narrow() { return narrow_; }  // indices if not is_wide()
  Growing<std::int64_t>& wide() { return wide_; }
  Growing<std::int64_t>& starts() { return starts_; }
  Growing<double>& labels() { return labels_; }
  // Of the indices as written, those of zeros included; smallest > largest if there are none.
  std::int64_t smallest() const { return smallest_; }
  std::int64_t largest() const { return largest_; }

 private:
  static const char* find(const char* at, const char* end) {
    return at == end ? nullptr : static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
  }

  void lines(const char* at, const char* end) {
    const std::size_t most = static_cast<std::size_t>(end - at) / 4 + 1;  // " 1:2" is the shortest entry
    values_.reserve(most);
    is_wide_ ? wide_.reserve(most) : narrow_.reserve(most);
    while (at < end) at = line(at);
  }

  const char* line(const char* at) {
    ++line_;
    at = text::skip(at);
    if (*at == '\n') return at + 1;
    if (*at == '#') return comment(at);
    double label = 0;
    const char* const token = at;
    const text::Number kind = text::number(at, label);
    if (kind != text::Number::good) refuse_label(token, kind);
    at = text::skip(query(text::skip(at)));
    std::int64_t before = -1;
    for (;; at = text::skip(at)) {
      if (*at == '\n' || *at == '#') break;
      at = entry(at, before);
    }
    labels_.push(label);
    starts_.push(static_cast<std::int64_t>(values_.size()));
    return *at == '#' ? comment(at) : at + 1;
  }

  const char* entry(const char* at, std::int64_t& before) {
    const char* const token = at;
    std::int64_t index = 0;
    for (; text::digit(*at) && at - token < 18; ++at) index = 10 * index + (*at - '0');
    if (text::digit(*at)) at = long_index(token, index);
    if (at == token || *at != ':') refuse_index(token);
    if (index < lowest_) refuse("index 0, but indices begin at 1 here; zero_based=True or \"auto\" allows 0");
    if (index > highest_) refuse_large(token);
    if (index <= before) {
      refuse("index " + std::to_string(index) + " comes after " + std::to_string(before) +
             "; the indices of a line must be strictly increasing");
    }
    before = index;
    if (index < smallest_) smallest_ = index;
    if (index > largest_) {
      largest_ = index;
      if (index >= std::numeric_limits<std::int32_t>::max() && !is_wide_) widen();
    }
    double value = 0;
    const char* const written = ++at;
    const text::Number kind = text::number(at, value);
    if (kind != text::Number::good) refuse_value(written, kind);
    if (value != 0) {
      values_.put(value);
      is_wide_ ? wide_.put(index) : narrow_.put(static_cast<std::int32_t>(index));
    }
    return at;
  }

  // `qid:n`, which ranking data has after the label, is skipped.
  const char* query(const char* at) {
    if (!(at[0] == 'q' && at[1] == 'i' && at[2] == 'd' && at[3] == ':')) return at;
    const char* const token = at;
    at += 4;
    if (*at == '-') ++at;
    if (!text::digit(*at)) refuse_token(token, " is not qid: and a whole number");
    while (text::digit(*at)) ++at;
    if (!text::ends(*at)) refuse_token(token, " is not qid: and a whole number");
    return at;
  }

  // Up to the next line; `at` is at the '#'.
  const char* comment(const char* at) {
    for (; *at != '\n'; ++at) {
      if (*at == '\0') refuse("a NUL byte in a comment; this does not look like a text file");
    }
    return at + 1;
  }

  // Leading zeros may make an index long; what is too large becomes the largest integer.
  static const char* long_index(const char* at, std::int64_t& index) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (index = 0; text::digit(*at); ++at) {
      const std::int64_t d = *at - '0';
      index = index > (most - d) / 10 ? most : 10 * index + d;
    }
    return at;
  }

  void widen() {
    wide_.reserve(narrow_.size());
    for (std::size_t t = 0; t < narrow_.size(); ++t) wide_.put(narrow_.data()[t]);
    wide_.reserve(values_.room());  // enough for the lines at hand, as everywhere
    is_wide_ = true;
  }

  // A token as it may be shown: short, and with what cannot be printed escaped.
  static std::string shown(const char* token, const char* end, bool& strange) {
    constexpr std::ptrdiff_t longest = 24;
    const char* const stop = end - token > longest ? token + longest : end;
    std::string out = "'";
    for (; token < stop; ++token) {
      const auto c = static_cast<unsigned char>(*token);
      if (c >= 32 && c < 127) {
        out += *token;
      } else {
        constexpr char hex[] = "0123456789abcdef";
        strange = true;
        out += "\\x";
        out += hex[c >> 4];
        out += hex[c & 15];
      }
    }
    return out + (stop < end ? "...'" : "'");
  }

  static const char* end_of(const char* token) {
    while (!text::ends(*token)) ++token;
    return token;
  }

  [[noreturn]] void refuse(const std::string& reason) const {
    throw std::invalid_argument("line " + std::to_string(line_) + ": " + reason);
  }

  [[noreturn]] void refuse_token(const char* token, const std::string& reason) const {
    bool strange = false;
    const std::string excerpt = shown(token, end_of(token), strange);
    refuse(excerpt + reason + (strange ? "; this does not look like a text file" : ""));
  }

  [[noreturn]] void refuse_label(const char* token, text::Number kind) const {
    const char* const end = end_of(token);
    if (kind == text::Number::malformed && std::memchr(token, ',', static_cast<std::size_t>(end - token))) {
      refuse_token(token, " lists several labels; every line must have one number as its label");
    }
    if (kind == text::Number::malformed && std::memchr(token, ':', static_cast<std::size_t>(end - token))) {
      refuse_token(token, " stands where the label should be; every line must begin with a number");
    }
    refuse_token(token, std::string(" as a label ") + reason(kind));
  }

  [[noreturn]] void refuse_value(const char* token, text::Number kind) const {
    refuse_token(token, std::string(" as a value ") + reason(kind));
  }

  static const char* reason(text::Number kind) {
    if (kind == text::Number::not_finite) return "is not finite; remove or impute such entries";
    return kind == text::Number::too_large ? "is too large for a double" : "is not a number";
  }

  [[noreturn]] void refuse_index(const char* token) const {
    const char* const end = end_of(token);
    const auto* colon = static_cast<const char*>(std::memchr(token, ':', static_cast<std::size_t>(end - token)));
    if (!colon) refuse_token(token, " has no colon; features are written index:value");
    bool negative = *token == '-' && colon - token > 1;
    for (const char* at = token + 1; at < colon; ++at) negative = negative && text::digit(*at);
    refuse_token(token, negative ? " has a negative index" : " has an index that is not a whole number");
  }

  [[noreturn]] void refuse_large(const char* token) const {
    refuse_token(token, " has an index that is too large; at most " + std::to_string(highest_) + " is allowed");
  }

  std::int64_t lowest_, highest_, line_ = 0;
  std::int64_t smallest_ = std::numeric_limits<std::int64_t>::max(), largest_ = -1;
  bool is_wide_ = false;
  std::string rest_;  // the beginning of a line whose end has not come yet
  Growing<double> values_, labels_;
  Growing<std::int32_t> narrow_;
  Growing<std::int64_t> wide_, starts_;
};

}  // namespace coordwise
