import { type Static, Type } from '@sinclair/typebox'
import { entry } from '#config/keys.ts'

const count = (description: string) =>
  Type.Optional(Type.Integer({ description, minimum: 0, maximum: 1e15 }))

/**
 * The limits of one scope; an absent one is unlimited. The names are the same in the configuration
 * file, in the settings of administrators and on API keys.
 */
export const limitValues = entry('Limits; an absent one is unlimited.', {
  requests_per_minute: count('Generations, embeddings and reranks per minute.'),
  input_tokens_per_minute: count('Input tokens per minute; cached tokens count.'),
  output_tokens_per_minute: count('Output tokens per minute.'),
  concurrent_generations: count('Generations at the same time.'),
  speech_sessions: count('Live speech sessions at the same time.'),
  speech_minutes_per_hour: count('Minutes of speech per hour, live and from files.'),
  stored_bytes: count('Bytes of stored files, those in the trash included.'),
})
export type LimitValues = Static<typeof limitValues>

/** Groups, models or users with limits of their own. */
export const limitEntriesMax = 1_000
const nameCharsMax = 256

/** Limits by the name of a group or model, or by the id of a user. */
const limitsByName = (description: string) =>
  Type.Record(Type.String({ minLength: 1, maxLength: nameCharsMax }), limitValues, {
    description,
    default: {},
    maxProperties: limitEntriesMax,
  })

/** Keys of the section `limits`: what principals and models may use. Off by default. */
export const limitScopeKeys = {
  default: Type.Object(limitValues.properties, {
    description: 'Limits of each user, over all of their tokens and keys.',
    default: {},
    additionalProperties: false,
  }),
  group: limitsByName(
    'Limits of each member of a group, instead of the defaults; of several groups the most generous holds.',
  ),
  user: limitsByName('Limits of one user, by id, instead of those of groups and the defaults.'),
  model: limitsByName('Limits of a model, shared by all callers.'),
}
