/* Macros around the declarations of every public header: C linkage in C++ programs, and symbol visibility. The shared
 * library is compiled with -fvisibility=hidden, so it exports these declarations and nothing else. */
#ifndef XLINK_EXPORT_H
#define XLINK_EXPORT_H

#ifdef __cplusplus
#define XL_BEGIN_DECLS _Pragma("GCC visibility push(default)") extern "C" {
#define XL_END_DECLS                                                                                                   \
    }                                                                                                                  \
    _Pragma("GCC visibility pop")
#else
#define XL_BEGIN_DECLS _Pragma("GCC visibility push(default)")
#define XL_END_DECLS   _Pragma("GCC visibility pop")
#endif

#endif
