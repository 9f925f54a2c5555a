//! The Python extension module of nicety; thin.
