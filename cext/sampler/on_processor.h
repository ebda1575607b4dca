/* Whether a thread that runs, or is ready to, has a processor, where it has no clock that tells. */
#pragma once

#include "sampler/process.h"

/* At this sample of the thread. Its Python frames have just been read, if it `has_frames`; the processor that it runs on or waits for
   has the number `processor`, and it `ran_just_now` unless it has gone on since the kernel's figures were read. If false, that is in
   doubt: the kernel's later figures are to settle it. */
bool on_processor(const struct sampled_process *process, struct sampled_thread *thread, const struct sample *sample, bool ran_just_now,
                  bool has_frames, int processor);

/* Whether it had one at the sample that is in doubt, by the kernel's figures now; those of that sample are in the thread. */
bool on_processor_settle(struct sampled_thread *thread, const struct schedule *now, uint64_t now_ns);
