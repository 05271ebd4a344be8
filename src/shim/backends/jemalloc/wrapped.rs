libcs_own! {
    pthread_mutex_init pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock
    pthread_mutexattr_init pthread_mutexattr_settype pthread_mutexattr_destroy
    pthread_cond_init pthread_cond_signal pthread_cond_wait pthread_cond_timedwait
    pthread_key_create pthread_setspecific pthread_join pthread_sigmask pthread_setname_np
    sigfillset sched_getcpu sched_setaffinity sched_yield getpid sbrk syscall
}

answer! {
    secure_getenv readlink pthread_atfork mmap munmap mprotect madvise clock_gettime gettimeofday
    sysconf sched_getaffinity dlsym dladdr _dl_find_object
    _rjem_je_pages_boot _rjem_je_arena_choose_hard
}
