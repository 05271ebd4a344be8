// The interface of jemalloc, for calls in jemalloc mode.
#pragma once

#include "check.h"

#define WEAK __attribute__((weak))
extern int mallctl(const char *, void *, size_t *, void *, size_t) WEAK;
extern int mallctlnametomib(const char *, size_t *, size_t *) WEAK;
extern int mallctlbymib(const size_t *, size_t, void *, size_t *, void *, size_t) WEAK;
extern void *mallocx(size_t, int) WEAK;
extern void *rallocx(void *, size_t, int) WEAK;
extern size_t xallocx(void *, size_t, size_t, int) WEAK;
extern size_t sallocx(const void *, int) WEAK;
extern size_t nallocx(size_t, int) WEAK;
extern void dallocx(void *, int) WEAK;
extern void sdallocx(void *, size_t, int) WEAK;
