/* libinterpose_program.so: it records a program that is not Python, from before its `main` on, as a descendant of the one that
   started it, or as the founder. Where anything is missing the program runs as it would. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/detail_levels.h"
#include "core/follow.h"
#include "core/passed_variables.h"
#include "core/preload.h"
#include "core/recorder.h"
#include "core/redact.h"
#include "core/xml_text.h"
#include "native/native_objects.h"
#include "program/program_host.h"
#include "program/program_place.h"
#include "program/program_plan.h"

enum { MOST_ARGUMENTS = 1000 };

static const char *variable(const char *name, const char *otherwise)
{
    const char *said = getenv(name);
    return said ? said : otherwise;
}

/* --- what the log says of the command */

static void put_redacted(struct xml_text *out, const char *text)
{
    size_t bytes = strlen(text);
    char *redacted = redact(text, &bytes);
    xml_put_escaped(out, redacted ? redacted : text, bytes);
    free(redacted);
}

/* The arguments are kept only where all is kept of commands. */
static void put_command(struct xml_text *out, const char *path, int count, char **words)
{
    char here[PATH_BYTES];
    xml_put(out, "  <command executable=\"");
    put_redacted(out, path);
    xml_put(out, "\" cwd=\"");
    put_redacted(out, getcwd(here, sizeof here) ? here : "");
    xml_put(out, "\">\n");
    for (int each = 1; arguments_kept(KIND_process) == KEEP_whole && each < count && each < MOST_ARGUMENTS; each++) {
        xml_put(out, "    <argument>");
        put_redacted(out, words[each]);
        xml_put(out, "</argument>\n");
    }
    xml_put(out, "  </command>\n");
}

static int describe(const struct plan *plan, const char *path, int count, char **words)
{
    struct xml_text head = {0};
    xml_put_bytes(&head, plan->head.text, plan->head.bytes);
    put_command(&head, path, count, words);
    int failed = head.failed ? ENOMEM : recorder_describe(head.text, head.bytes);
    xml_free(&head);
    return failed;
}

/* --- which are followed */

/* By the command line, if a pattern says so. */
static bool choose_followed(int count, char **words)
{
    char command[PATH_BYTES] = "";
    size_t used = 0;
    for (int each = 0; each < count && used + strlen(words[each]) + 2 < sizeof command; each++)
        used += (size_t)sprintf(command + used, "%s%s", each ? " " : "", words[each]);
    return !follow_choose(variable("INTERPOSE_FOLLOW", "on"), command) && !redact_choose(variable("INTERPOSE_REDACT", ""));
}

/* --- the recording */

static bool is_founder(const struct place *place)
{
    return !*place->lineage;
}

static void take_place(struct plan *plan, const struct place *place, struct reading begun)
{
    plan->settings.directory = place->directory;
    plan->settings.founder = place->founder;
    plan->settings.lineage = place->lineage;
    plan->settings.begun_wall_ns = begun.wall_ns;
    plan->settings.begun_cpu_ns = begun.cpu_ns;
    plan->settings.paused &= is_founder(place);
    plan->settings.dialogue_bytes = 0;
}

/* The filter holds for the whole experiment. */
static void begin_filter(const struct plan *plan, bool is_founder)
{
    recorder_filter(plan->filter.text, is_founder ? plan->filter.bytes : 0);
    for (unsigned each = 0; is_founder && each < plan->notes; each++)
        recorder_say(plan->note[each].kind, plan->note[each].attributes);
}

static void record(struct plan *plan, const struct place *place, int count, char **words)
{
    char path[PATH_BYTES];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
    path[bytes < 0 ? 0 : bytes] = 0;
    int failed = recorder_begin(&plan->settings);
    failed = failed ? failed : describe(plan, path, count, words);
    failed = failed ? failed : recorder_map(plan->map.text, plan->map.bytes);
    if (failed) {
        recorder_detach();
        directory_discard(plan->settings.directory);
        return;
    }
    struct thread *thread = recording();
    struct reading begin = thread ? own_begin(thread) : (struct reading){0, 0};
    begin_filter(plan, is_founder(place));
    program_know_itself(path);
    native_prepare();
    native_look();
    if (thread)
        own_end(thread, begin);
}

__attribute__((visibility("default"))) void interpose_program_begin(int count, char **words)
{
    static struct plan plan;
    static struct place place;
    char step[260];
    struct reading begun = {clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID)};
    if (!preload_library() || !place_find(&place, step) || !plan_read(&plan, place.founder) || !choose_followed(count, words) ||
        !(place_claim(&place, step) || (!follow_is_off() && place_make(&place, step))))
        return;
    preload_choose_programs(!follow_is_off());
    passed_variables_keep(environ);
    take_place(&plan, &place, begun);
    record(&plan, &place, count, words);
}
