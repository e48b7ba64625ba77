# The backend of cards: CUDA where its compiler is found, HIP where it is asked for, else none.
# STRATA_GPU says whether there is one, STRATA_GPU_RUNTIME what links its runtime.
find_program(STRATA_NVCC nvcc PATHS /usr/local/cuda/bin)
if(STRATA_NVCC AND NOT STRATA_SANITIZE AND NOT STRATA_FUZZ)
  set(cuda_default ON)
else()
  set(cuda_default OFF)
endif()
option(STRATA_CUDA "Build the CUDA backend (needs nvcc; on where it is found)" ${cuda_default})
set(STRATA_CUDA_ARCHITECTURES 90 CACHE STRING
    "Cards to compile for: 75;80;86;89;90;100;120, or one of them for a quick build")
set(STRATA_GPU OFF)
set(STRATA_GPU_RUNTIME "")
if(STRATA_CUDA)
  set(CMAKE_CUDA_COMPILER ${STRATA_NVCC})
  set(CMAKE_CUDA_ARCHITECTURES ${STRATA_CUDA_ARCHITECTURES})
  # Contraction off as everywhere: a fused multiply-add is written where it is meant. Division and
  # square root are exact and subnormals kept by default.
  set(CMAKE_CUDA_FLAGS "-fmad=false --expt-relaxed-constexpr -Werror all-warnings")
  set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG")
  enable_language(CUDA)
  # CMake 3.25 does not know how newer compilers take the standard, and the C++ one holds here too.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  find_package(CUDAToolkit REQUIRED)
  if(CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  set(STRATA_GPU ON)
  # Its headers are for the files of cards alone: strata_gpu_sources.
  set(STRATA_GPU_RUNTIME $<LINK_ONLY:CUDA::cudart_static>)
  set(STRATA_GPU_INCLUDE ${CUDAToolkit_INCLUDE_DIRS})
endif()

# C++ files that include the runtime's headers.
function(strata_gpu_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "-isystem${STRATA_GPU_INCLUDE}")
endfunction()
