/* What waits for nobody: a value for all who listen now, and wills, which become such a value. */
#include "life.h"

static u32 publication(struct core *core, struct connection *caller, u32 topic, u32 size) {
    u32 number;
    struct row *row = row_new(&core->table, &number, PUBLICATION, topic, 0, core->now);
    row->caller = caller->number;
    row->state = DONE; /* nobody keeps track of it as of a call that waits, since it has no time of its own */
    row->size = size;
    caller->rows++;
    return number;
}

/* Whoever is given the value has it written by then, or copied: it is needed no more. */
static void hand_out(struct core *core, u32 number) {
    junction_publish(&core->table, number);
    row_empty(&core->table, row_at(&core->table, number));
    call_count(core, row_at(&core->table, number), PROMPT);
    call_free_if_done(core, number);
}

void call_publish(struct core *core, struct connection *caller, u32 topic, const u8 *value, u32 size, const u8 *form,
                  u32 form_size) {
    u32 number = publication(core, caller, topic, size);
    struct row *row = row_at(&core->table, number);
    row->value = value;
    core->table.borrowed++;
    if (form_size) row_extra(&core->table, row)->form = blob_new(form, form_size);
    hand_out(core, number);
}

enum refusal call_will(struct core *core, struct connection *caller, const struct call *call) {
    u32 number;
    struct row *row = row_new(&core->table, &number, WILL, call->topic, 0, core->now);
    row->deadline = core->now + call->seconds;
    row->caller = caller->number;
    caller->rows++;
    row->id_size = (u8)call->id_size;
    if (call->id_size <= ID_INSIDE)
        memcpy(row->id, call->id, call->id_size);
    else
        row_extra(&core->table, row)->id = blob_new(call->id, call->id_size);
    row->value = call->value;
    row->size = call->value_size;
    core->table.borrowed++;
    enum refusal why = call_admit(core, caller, row);
    if (why) {
        row->state = DONE;
        call_free(core, number);
    } else {
        call_become(core, number, row, KEPT);
    }
    return why;
}

void call_testify(struct core *core, u32 will) {
    struct row *from = row_at(&core->table, will);
    spot_refer(&core->table, from->topic);
    u32 number = publication(core, caller_of(core, from), from->topic, from->size);
    struct row *row = row_at(&core->table, number);
    row->value = from->value;
    row->flags |= from->flags & OWNS;
    from->value = NULL;
    from->flags &= (u8)~OWNS;
    hand_out(core, number);
}
