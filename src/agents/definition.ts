import { refused } from '#lib/unprocessable.ts'
import type { AgentDefinition, AgentSampling, Visibility } from './agents.ts'
import {
  type AgentFields,
  readAgentBody,
  readSampling,
  readTools,
  readVisibilityFields,
} from './schema.ts'

/** What a body may be held against: the name under which the catalogue knows a model. */
export type KnownModel = (name: string) => string | undefined

/** The body of a creation; throws an `AppError` of status 422. */
export function readNewAgent(body: unknown, knownModel: KnownModel): AgentDefinition {
  const { fields } = readAgentBody(body)
  const { name, model } = fields
  if (name === undefined) throw refused('name', '"name" is required.')
  if (model === undefined) throw refused('model', '"model" is required.')
  return { ...defaults, name, model, ...readFields(fields, knownModel) }
}

/**
 * What an agent is after a change. A field that is given takes the place of the whole field, and one
 * that is null is put back to its default. Throws an `AppError` of status 422.
 */
export function readChangedAgent(
  known: AgentDefinition,
  body: unknown,
  knownModel: KnownModel,
): AgentDefinition {
  const { fields, nulls } = readAgentBody(body)
  for (const name of ['name', 'model']) {
    if (nulls.has(name)) throw refused(name, `"${name}" is required.`)
  }
  const reset = Object.entries(defaults).filter(([field]) => nulls.has(field))
  return { ...known, ...Object.fromEntries(reset), ...readFields(fields, knownModel) }
}

const noSampling: AgentSampling = {
  temperature: null,
  topP: null,
  topK: null,
  presencePenalty: null,
  frequencyPenalty: null,
  maxOutputTokens: null,
  reasoningEffort: null,
}

const defaults: Omit<AgentDefinition, 'name' | 'model'> = {
  description: null,
  instructions: null,
  tools: [],
  collections: [],
  sampling: noSampling,
  visibility: { kind: 'owner' },
}

/** Those that are given. */
function readFields(fields: AgentFields, knownModel: KnownModel): Partial<AgentDefinition> {
  const { name, description, model, instructions, collections } = fields
  const { tools, sampling, visibility } = fields
  return {
    ...(name === undefined ? {} : { name: readLine(name, 'name') }),
    ...(description === undefined ? {} : { description }),
    ...(model === undefined ? {} : { model: readModel(model, knownModel) }),
    ...(instructions === undefined ? {} : { instructions }),
    ...(tools === undefined ? {} : { tools: readTools(tools) }),
    ...(collections === undefined ? {} : { collections: readWords(collections, 'collections') }),
    ...(sampling === undefined ? {} : { sampling: readSampling(sampling) }),
    ...(visibility === undefined ? {} : { visibility: readVisibility(visibility) }),
  }
}

function readModel(name: string, knownModel: KnownModel): string {
  const known = knownModel(name)
  if (known !== undefined) return known
  throw refused('model', '"model" must name a model that generates text.', 'model_not_found')
}

function readVisibility(value: NonNullable<AgentFields['visibility']>): Visibility {
  const { kind, groups, users } = readVisibilityFields(value)
  const lists = { groups, users }
  for (const [field, list] of Object.entries(lists)) {
    if (field !== kind && list !== undefined) {
      const param = `visibility.${field}`
      throw refused(param, `"${param}" does not go with the kind "${kind}".`)
    }
  }
  if (kind === 'owner' || kind === 'everyone') return { kind }
  const named = lists[kind]
  const param = `visibility.${kind}`
  if (named === undefined) throw refused(param, `"${param}" is required with the kind "${kind}".`)
  const list = readWords(named, param)
  return kind === 'groups' ? { kind, groups: list } : { kind, users: list }
}

function readWords(words: readonly string[], param: string): readonly string[] {
  return [...new Set(words.map((word, index) => readLine(word, `${param}[${index}]`)))]
}

/** No database row and no list on a screen should hold control characters. */
function readLine(given: string, param: string): string {
  const line = given.trim()
  if (line === '') throw refused(param, `"${param}" must not be empty.`)
  if (!/\p{Cc}/u.test(line) && line.isWellFormed()) return line
  throw refused(param, `"${param}" must be plain text on one line.`)
}
