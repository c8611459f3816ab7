import {
  type ObjectOptions,
  type Static,
  type StringOptions,
  type TProperties,
  Type,
} from '@sinclair/typebox'
import { withNulls } from '#api/described.ts'
import { isRecord, type JsonObject, withoutNulls } from '#lib/json.ts'
import { type Checker, compileChecker } from '#lib/schema.ts'
import { refused, unknownField } from '#lib/unprocessable.ts'
import type { AgentSampling, AgentTool } from './agents.ts'

/** The wire shapes of `/v1/agents`. A field that is null counts as not given. */

const nameCharsMax = 100
const descriptionCharsMax = 1_000
const modelCharsMax = 256
const instructionsCharsMax = 100_000
const toolsMax = 128
const toolDescriptionCharsMax = 10_000
/** Of all schemas of the parameters of an agent's tools, as JSON. */
const toolsCharsMax = 262_144
const allowedToolsMax = 128
const collectionsMax = 32
/** Of groups or users that an agent is shared with. */
const sharedWithMax = 100
const wordCharsMax = 256

const strict = <T extends TProperties>(fields: T, options: ObjectOptions = {}) =>
  Type.Object(fields, { additionalProperties: false, ...options })
const text = (charsMax: number, description: string) =>
  Type.String({ maxLength: charsMax, description })
const filled = (charsMax: number, options: StringOptions = {}) =>
  Type.String({ minLength: 1, maxLength: charsMax, ...options })
const words = (wordsMax: number, description: string) =>
  Type.Array(filled(wordCharsMax), { maxItems: wordsMax, description })
const range = (minimum: number, maximum: number) => Type.Number({ minimum, maximum })
const count = () => Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
const oneOf = <Word extends string>(description: string, ...options: Word[]) =>
  Type.Union(
    options.map((word) => Type.Literal(word)),
    { description },
  )
const object = (description = '') =>
  Type.Unsafe<JsonObject>(Type.Object({}, description === '' ? {} : { description }))

const samplingBody = strict(
  {
    temperature: Type.Optional(range(0, 2)),
    top_p: Type.Optional(range(0, 1)),
    top_k: Type.Optional(count()),
    presence_penalty: Type.Optional(range(-2, 2)),
    frequency_penalty: Type.Optional(range(-2, 2)),
    max_output_tokens: Type.Optional(count()),
    reasoning_effort: Type.Optional(
      oneOf(
        'How hard a model that reasons thinks.',
        'none',
        'minimal',
        'low',
        'medium',
        'high',
        'xhigh',
        'max',
      ),
    ),
  },
  { description: 'What holds where a caller says nothing; absent: the model decides.' },
)

const visibilityBody = strict(
  {
    kind: oneOf(
      'Who sees and may call the agent, beside its owner.',
      'owner',
      'groups',
      'users',
      'everyone',
    ),
    groups: Type.Optional(
      words(sharedWithMax, 'Groups as tokens name them. Goes with the kind `groups`.'),
    ),
    users: Type.Optional(
      words(sharedWithMax, 'Users by the subjects of their tokens. Goes with the kind `users`.'),
    ),
  },
  { description: 'Whom it is shared with.' },
)

const agentFields = {
  name: Type.Optional(filled(nameCharsMax, { description: 'One line that people know it by.' })),
  description: Type.Optional(text(descriptionCharsMax, 'What it is for.')),
  model: Type.Optional(
    filled(modelCharsMax, { description: 'A model that generates text; never another agent.' }),
  ),
  instructions: Type.Optional(
    text(instructionsCharsMax, 'They stand before the instructions of whoever calls.'),
  ),
  tools: Type.Optional(Type.Array(object(), { maxItems: toolsMax })),
  collections: Type.Optional(
    words(
      collectionsMax,
      'Collections that it may search, by name or id. Each caller finds what they may read.',
    ),
  ),
  sampling: Type.Optional(object()),
  visibility: Type.Optional(object()),
}
const agentBody = strict(agentFields)

const functionTool = strict({
  type: Type.Literal('function'),
  name: Type.String({
    pattern: '^[a-zA-Z0-9_-]{1,64}$',
    description: 'a name of 1 to 64 letters, digits, underscores or dashes',
  }),
  description: Type.Optional(text(toolDescriptionCharsMax, 'What the model reads about it.')),
  parameters: Type.Optional(object('A JSON Schema.')),
  strict: Type.Optional(
    Type.Boolean({ description: 'Whether arguments must keep to the schema.' }),
  ),
})

const serverTool = strict({
  type: Type.Literal('mcp'),
  server_label: Type.String({
    pattern: '^[a-zA-Z][a-zA-Z0-9_-]{0,63}$',
    description: 'a label: a letter, and up to 63 letters, digits, underscores or dashes',
  }),
  allowed_tools: Type.Optional(words(allowedToolsMax, 'Names of its tools; absent: all of them.')),
  require_approval: Type.Optional(
    oneOf('Whether the caller has to approve each call; absent: `always`.', 'always', 'never'),
  ),
})

/** The bodies as a whole, as the document tells of them: the parts of one are read one by one. */
const wholeFields = {
  ...agentFields,
  tools: Type.Optional(
    Type.Array(Type.Union([withNulls(functionTool), withNulls(serverTool)]), {
      maxItems: toolsMax,
      description:
        'Functions, which its callers run, and MCP servers of the configuration, by label.',
    }),
  ),
  sampling: Type.Optional(withNulls(samplingBody)),
  visibility: Type.Optional(withNulls(visibilityBody)),
}
export const agentChange = withNulls(strict(wholeFields, { $id: 'AgentChange' }))
export const newAgent = withNulls(
  strict(
    {
      ...wholeFields,
      name: Type.Optional(agentFields.name, false),
      model: Type.Optional(agentFields.model, false),
    },
    { $id: 'NewAgent' },
  ),
)

export type AgentFields = Static<typeof agentBody>
type ServerFields = Static<typeof serverTool>

const agentChecker = compileChecker(agentBody)
const samplingChecker = compileChecker(samplingBody)
const visibilityChecker = compileChecker(visibilityBody)
const functionChecker = compileChecker(functionTool)
const serverChecker = compileChecker(serverTool)

/** The fields of a body, and which of them are null; throws an `AppError` of status 422. */
export function readAgentBody(body: unknown): {
  fields: AgentFields
  nulls: ReadonlySet<string>
} {
  if (!isRecord(body)) throw refused('', 'The body must be an object.')
  const nulls = Object.keys(body).filter((name) => body[name] === null)
  const unknown = nulls.find((name) => !Object.hasOwn(agentFields, name))
  if (unknown !== undefined) throw unknownField(unknown)
  return { fields: read(agentChecker, withoutNulls(body), ''), nulls: new Set(nulls) }
}

export function readSampling(value: JsonObject): AgentSampling {
  const sampling = read(samplingChecker, withoutNulls(value), 'sampling')
  return {
    temperature: sampling.temperature ?? null,
    topP: sampling.top_p ?? null,
    topK: sampling.top_k ?? null,
    presencePenalty: sampling.presence_penalty ?? null,
    frequencyPenalty: sampling.frequency_penalty ?? null,
    maxOutputTokens: sampling.max_output_tokens ?? null,
    reasoningEffort: sampling.reasoning_effort ?? null,
  }
}

export function readVisibilityFields(value: JsonObject): Static<typeof visibilityBody> {
  return read(visibilityChecker, withoutNulls(value), 'visibility')
}

export function readTools(values: readonly JsonObject[]): readonly AgentTool[] {
  const tools = values.map((value, index) => readTool(value, `tools[${index}]`))
  if (JSON.stringify(tools).length > toolsCharsMax) {
    throw refused('tools', `"tools" must have at most ${toolsCharsMax} characters as JSON.`)
  }
  const keys = tools.map((tool) => `${tool.type} ${'label' in tool ? tool.label : tool.name}`)
  const second = keys.findIndex((key, index) => keys.indexOf(key) !== index)
  if (second !== -1) throw refused(`tools[${second}]`, `"tools[${second}]" is there already.`)
  return tools
}

function readTool(value: JsonObject, path: string): AgentTool {
  const given = withoutNulls(value)
  switch (given['type']) {
    case 'function': {
      const {
        name,
        description = null,
        parameters = null,
        strict = null,
      } = read(functionChecker, given, path)
      return { type: 'function', name, description, parameters, strict }
    }
    case 'mcp':
      return serverOf(read(serverChecker, given, path))
    default:
      throw refused(`${path}.type`, `"${path}.type" must be "function" or "mcp".`)
  }
}

function serverOf(tool: ServerFields): AgentTool {
  return {
    type: 'mcp',
    label: tool.server_label,
    allowed: tool.allowed_tools ?? null,
    approval: tool.require_approval ?? 'always',
  }
}

function read<T>(
  checker: Pick<Checker<never>, 'firstError'> & { check(value: unknown): value is T },
  value: unknown,
  path: string,
): T {
  if (checker.check(value)) return value
  const fault = checker.firstError(value)
  const at = [path, fault?.path ?? ''].filter((step) => step !== '').join('.')
  if (fault?.unknownField) throw unknownField(at)
  const complaint = fault?.message.replace(/^(The value|"[^"]*") /, '') ?? 'is not as expected.'
  throw refused(at, `${at === '' ? 'The body' : `"${at}"`} ${complaint}`)
}
