"""Operations on arrays, each beside the CUDA C++ it launches."""
