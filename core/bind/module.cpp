// The compiled core as a Python module.  Shapes, dtypes and lengths are checked in these bindings and in
// coordwise/rows.py, once; the core trusts them.
#include "bind.hpp"

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);  // a thread that a time limit left alone may hold a matrix at exit
  m.doc() = "Compiled core of coordwise; use it through coordwise.kernels.";
  coordwise::binding::bind_terms(m);
  coordwise::binding::bind_matrices(m);
  coordwise::binding::bind_streams(m);
  coordwise::binding::bind_runs(m);
  coordwise::binding::bind_svmlight(m);
  coordwise::binding::bind_callables(m);
  coordwise::binding::bind_mixed(m);
  m.def("end_threads", &coordwise::binding::end_threads);
}
