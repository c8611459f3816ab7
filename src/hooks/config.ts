import { Type } from '@sinclair/typebox'
import { entry, text, whole } from '#config/keys.ts'
import type { Config } from '#config/schema.ts'

const hooksMax = 32

/** A `[[hook]]` of the file. */
export const hookEntry = entry('Code that checks requests to models and their output.', {
  name: text('Unique name, used in logs, metrics and error messages.'),
  module: text(
    'moderation, which is built in, or the path of a module that exports createHook. Relative to the working folder.',
  ),
  models: Type.Array(Type.String({ minLength: 1 }), {
    description: 'Names and patterns of the models it applies to; empty: all.',
    default: [],
  }),
  groups: Type.Array(Type.String({ minLength: 1 }), {
    description: 'Groups whose members it applies to; empty: everyone.',
    default: [],
  }),
  deadlineMs: whole('Time for one check. Without a verdict, the request fails.', {
    default: 5_000,
    minimum: 10,
    maximum: 600_000,
  }),
  heldCharsMax: whole(
    'Maximum output of a generation, in characters, where the hook checks the whole output. Longer output is refused.',
    { default: 1_000_000, minimum: 1 },
  ),
  options: Type.Record(Type.String(), Type.Unknown(), {
    description: 'Passed to the module as they are. Never printed.',
    default: {},
    secret: true,
  }),
})

/** The keys of hooks. */
export const hookKeys = {
  hook: Type.Array(hookEntry, {
    description: 'Hooks that check requests and output, in the order in which they run.',
    default: [],
    maxItems: hooksMax,
  }),
}

/** Rules of these keys beyond the schema. */
export function* hookFaults({ hook }: Config): Generator<string> {
  const names = new Set<string>()
  for (const [at, { name }] of hook.entries()) {
    if (names.has(name)) yield `hook.${at}.name: "${name}" is used twice.`
    names.add(name)
  }
}
