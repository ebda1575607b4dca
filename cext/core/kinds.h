/* What a call can be of; the words are those of the reports. */
#pragma once

#define KINDS(X) X(db) X(screen) X(file) X(net) X(process) X(sync) X(sleep) X(idle) X(logic) X(import)
#define NUMBER_OF_KIND(name) KIND_##name,
enum kind { KINDS(NUMBER_OF_KIND) KIND_COUNT };
