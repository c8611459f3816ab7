import { asRecord, isRecord, withoutNulls } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import { refused, refusedBySchema, unknownField } from '#lib/unprocessable.ts'
import type {
  AgentDefinition,
  AgentSampling,
  AgentSpeech,
  AgentTool,
  Visibility,
} from './agents.ts'
import { type AgentFields, agentBody, collectionsMax, toolsMax } from './schema.ts'

/** Returns the catalogue's name of a model that generates text. */
export type KnownModel = (name: string) => string | undefined

/** All tools of an agent, as JSON. */
const toolsCharsMax = 262_144

const checker = compileChecker(agentBody)

export const emptyDefinition: Omit<AgentDefinition, 'name' | 'model'> = {
  description: null,
  instructions: null,
  tools: [],
  collections: [],
  sampling: parseSampling({}),
  speech: null,
  visibility: { kind: 'owner' },
}

/**
 * The `collections` of a body are references, which `withCollectionIds` resolves. Throws an `AppError`
 * of status 422.
 */
export function parseNewAgent(body: unknown, knownModel: KnownModel): AgentDefinition {
  const { fields } = validateBody(body)
  const { name, model } = fields
  if (name === undefined) throw refused('name', '"name" is required.')
  if (model === undefined) throw refused('model', '"model" is required.')
  return { ...emptyDefinition, name, model, ...parseFields(fields, knownModel) }
}

/** The references in a body that is not validated yet, as `parseNewAgent` reads them. */
export function referencesIn(body: unknown): readonly string[] {
  const { collections } = asRecord(body)
  if (!Array.isArray(collections) || collections.length > collectionsMax) return []
  const references = collections.map((field) => (isRecord(field) ? field['id'] : field))
  return references.filter((reference) => typeof reference === 'string').map((text) => text.trim())
}

/**
 * A field in the body replaces the whole field; null resets it. `collections` are references as in
 * `parseNewAgent`. Throws an `AppError` of status 422.
 */
export function parseAgentChange(
  current: AgentDefinition,
  body: unknown,
  knownModel: KnownModel,
): AgentDefinition {
  const { fields, nulls } = validateBody(body)
  for (const name of ['name', 'model']) {
    if (nulls.has(name)) throw refused(name, `"${name}" is required.`)
  }
  const reset = Object.entries(emptyDefinition).filter(([field]) => nulls.has(field))
  return { ...current, ...Object.fromEntries(reset), ...parseFields(fields, knownModel) }
}

function validateBody(body: unknown): { fields: AgentFields; nulls: ReadonlySet<string> } {
  if (!isRecord(body)) throw refused('', 'The body must be an object.')
  const nulls = Object.keys(body).filter((name) => body[name] === null)
  const unknown = nulls.find((name) => !Object.hasOwn(agentBody.properties, name))
  if (unknown !== undefined) throw unknownField(unknown)
  const fields = withoutNulls(body)
  const { tools, sampling, speech, visibility } = fields
  if (Array.isArray(tools) && tools.length <= toolsMax) {
    fields['tools'] = tools.map(withoutNullFields)
  }
  if (isRecord(sampling)) fields['sampling'] = withoutNulls(sampling)
  if (isRecord(speech)) fields['speech'] = withoutNulls(speech)
  if (isRecord(visibility)) fields['visibility'] = withoutNulls(visibility)
  if (checker.check(fields)) return { fields, nulls: new Set(nulls) }
  throw refusedBySchema(checker.firstError(fields))
}

function withoutNullFields(tool: unknown, index: number): unknown {
  if (!isRecord(tool)) return tool
  const { type } = tool
  if (type === 'function' || type === 'mcp') return withoutNulls(tool)
  const param = `tools[${index}].type`
  throw refused(param, `"${param}" must be "function" or "mcp".`)
}

function parseFields(fields: AgentFields, knownModel: KnownModel): Partial<AgentDefinition> {
  const { name, description, model, instructions, collections, tools } = fields
  const { sampling, speech, visibility } = fields
  return {
    ...(name === undefined ? {} : { name: parseLine(name, 'name') }),
    ...(description === undefined ? {} : { description }),
    ...(model === undefined ? {} : { model: parseModel(model, knownModel) }),
    ...(instructions === undefined ? {} : { instructions }),
    ...(tools === undefined ? {} : { tools: parseTools(tools) }),
    ...(collections === undefined ? {} : { collections: parseReferences(collections) }),
    ...(sampling === undefined ? {} : { sampling: parseSampling(sampling) }),
    ...(speech === undefined ? {} : { speech: parseSpeech(speech) }),
    ...(visibility === undefined ? {} : { visibility: parseVisibility(visibility) }),
  }
}

function parseModel(name: string, knownModel: KnownModel): string {
  const known = knownModel(name)
  if (known !== undefined) return known
  throw refused('model', '"model" must name a model that generates text.', 'model_not_found')
}

function parseTools(fields: NonNullable<AgentFields['tools']>): readonly AgentTool[] {
  const tools = fields.map((tool): AgentTool => {
    if (tool.type === 'mcp') {
      const { server_label: label, allowed_tools: allowed, require_approval: approval } = tool
      return { type: 'mcp', label, allowed: allowed ?? null, approval: approval ?? 'always' }
    }
    const { type, name, description = null, parameters = null, strict = null } = tool
    return { type, name, description, parameters, strict }
  })
  if (JSON.stringify(tools).length > toolsCharsMax) {
    throw refused('tools', `"tools" must have at most ${toolsCharsMax} characters as JSON.`)
  }
  const keys = tools.map((tool) => `${tool.type} ${'label' in tool ? tool.label : tool.name}`)
  const duplicate = keys.findIndex((key, index) => keys.indexOf(key) !== index)
  if (duplicate !== -1) {
    throw refused(`tools[${duplicate}]`, `"tools[${duplicate}]" is a duplicate.`)
  }
  return tools
}

function parseSampling(fields: NonNullable<AgentFields['sampling']>): AgentSampling {
  return {
    temperature: fields.temperature ?? null,
    topP: fields.top_p ?? null,
    topK: fields.top_k ?? null,
    presencePenalty: fields.presence_penalty ?? null,
    frequencyPenalty: fields.frequency_penalty ?? null,
    maxOutputTokens: fields.max_output_tokens ?? null,
    reasoningEffort: fields.reasoning_effort ?? null,
  }
}

/** The model is found when the agent speaks: it may be restarted or renamed meanwhile. */
function parseSpeech(fields: NonNullable<AgentFields['speech']>): AgentSpeech {
  const { model, voice, speed = null, instructions = null } = fields
  return {
    model: parseLine(model, 'speech.model'),
    voice: parseLine(voice, 'speech.voice'),
    speed,
    instructions,
  }
}

function parseVisibility({ kind, ...lists }: NonNullable<AgentFields['visibility']>): Visibility {
  const surplus = (['groups', 'users'] as const).find(
    (field) => field !== kind && lists[field] !== undefined,
  )
  if (surplus !== undefined) {
    const param = `visibility.${surplus}`
    throw refused(param, `"${param}" cannot be combined with the kind "${kind}".`)
  }
  if (kind === 'owner' || kind === 'everyone') return { kind }
  const param = `visibility.${kind}`
  const names = lists[kind]
  if (names === undefined) throw refused(param, `"${param}" is required with the kind "${kind}".`)
  const list = parseList(names, param)
  return kind === 'groups' ? { kind, groups: list } : { kind, users: list }
}

function parseReferences(fields: NonNullable<AgentFields['collections']>): readonly string[] {
  const references = fields.map((field) => (typeof field === 'string' ? field : field.id))
  return parseList(references, 'collections')
}

function parseList(items: readonly string[], param: string): readonly string[] {
  return [...new Set(items.map((item, index) => parseLine(item, `${param}[${index}]`)))]
}

function parseLine(text: string, param: string): string {
  const line = text.trim()
  if (line === '') throw refused(param, `"${param}" must not be empty.`)
  if (!/\p{Cc}/u.test(line) && line.isWellFormed()) return line
  throw refused(param, `"${param}" must be plain text on one line.`)
}
