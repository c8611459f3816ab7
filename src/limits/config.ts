import { type Static, Type } from '@sinclair/typebox'
import { entry, reloading, section } from '#config/keys.ts'

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
const limitEntriesMax = 1_000
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

const money = (description: string) =>
  Type.Optional(Type.Number({ description, minimum: 0, maximum: 1e9 }))

/** Budgets of one owner per day or month (UTC): what is used up is refused, `soft_…` only warns. */
const budgetValues = entry('Budgets; an absent one is unlimited.', {
  tokens_per_day: count('Input and output tokens per day.'),
  tokens_per_month: count('Input and output tokens per month.'),
  cost_per_day: money('Cost per day, in the currency of the prices.'),
  cost_per_month: money('Cost per month, in the currency of the prices.'),
  soft_tokens_per_day: count('Tokens per day after which a warning is recorded.'),
  soft_tokens_per_month: count('Tokens per month after which a warning is recorded.'),
  soft_cost_per_day: money('Cost per day after which a warning is recorded.'),
  soft_cost_per_month: money('Cost per month after which a warning is recorded.'),
})
export type BudgetValues = Static<typeof budgetValues>

const budgetsByName = (description: string) =>
  Type.Record(Type.String({ minLength: 1, maxLength: nameCharsMax }), budgetValues, {
    description,
    default: {},
    maxProperties: limitEntriesMax,
  })

const price = (description: string) => Type.Number({ description, minimum: 0, maximum: 1e6 })

/** Of one model, per million tokens. */
const modelPrice = entry('The price of a model.', {
  input_per_million: price('Price of a million input tokens.'),
  cached_input_per_million: Type.Optional(
    price('Price of a million input tokens that the upstream had in its cache; default: as input.'),
  ),
  output_per_million: price('Price of a million output tokens.'),
})
export type ModelPrice = Static<typeof modelPrice>

/** The keys of budgets and prices. */
export const budgetKeys = {
  budgets: reloading(
    section('Budgets per day or month (UTC), in tokens and money.', {
      default: Type.Object(budgetValues.properties, {
        description: 'Budgets of each user.',
        default: {},
        additionalProperties: false,
      }),
      user: budgetsByName('Budgets of one user, by id, instead of the defaults.'),
      group: budgetsByName('Budgets of a group, shared by its members.'),
      key: budgetsByName('Budgets of one API key, by id.'),
    }),
  ),
  prices: reloading(
    Type.Record(Type.String({ minLength: 1, maxLength: nameCharsMax }), modelPrice, {
      description:
        'Prices by model name: `[prices.NAME]` with `input_per_million`, `cached_input_per_million` and `output_per_million`, in any one currency.',
      default: {},
    }),
  ),
}
