import {
  type ObjectOptions,
  type Static,
  type StringOptions,
  type TProperties,
  Type,
} from '@sinclair/typebox'
import { withNulls } from '#api/described.ts'
import { oneOf } from '#api/request-schema.ts'
import type { JsonObject } from '#lib/json.ts'

// A null field counts as absent, also in the objects of a body.

const nameCharsMax = 100
const descriptionCharsMax = 1_000
const modelCharsMax = 256
const instructionsCharsMax = 100_000
export const toolsMax = 128
const toolDescriptionCharsMax = 10_000
const allowedToolsMax = 128
export const collectionsMax = 32
/** Groups or users that an agent is shared with. */
const sharedWithMax = 100
const itemCharsMax = 256
const speechInstructionsCharsMax = 4_096
/** A subject and a name. */
const referenceCharsMax = 512

const strict = <T extends TProperties>(fields: T, options: ObjectOptions = {}) =>
  Type.Object(fields, { additionalProperties: false, ...options })
const text = (charsMax: number, description: string) =>
  Type.String({ maxLength: charsMax, description })
const nonEmpty = (charsMax: number, options: StringOptions = {}) =>
  Type.String({ minLength: 1, maxLength: charsMax, ...options })
const list = (maxItems: number, description: string) =>
  Type.Array(nonEmpty(itemCharsMax), { maxItems, description })
const range = (minimum: number, maximum: number) => Type.Number({ minimum, maximum })
const count = () => Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
const sampling = strict(
  {
    temperature: Type.Optional(range(0, 2)),
    top_p: Type.Optional(range(0, 1)),
    top_k: Type.Optional(count()),
    presence_penalty: Type.Optional(range(-2, 2)),
    frequency_penalty: Type.Optional(range(-2, 2)),
    max_output_tokens: Type.Optional(count()),
    reasoning_effort: Type.Optional(oneOf(efforts, 'The effort of reasoning models.')),
  },
  { description: 'Defaults for requests; absent: the default of the model.' },
)

const speech = strict(
  {
    model: nonEmpty(modelCharsMax, { description: 'A model of mode `speak`.' }),
    voice: nonEmpty(itemCharsMax, { description: 'A voice that the model knows.' }),
    speed: Type.Optional(range(0.25, 4)),
    instructions: Type.Optional(text(speechInstructionsCharsMax, 'How to speak.')),
  },
  { description: 'How its answers are spoken: `POST /v1/audio/speech` with `agent`.' },
)

const visibility = strict(
  {
    kind: oneOf(
      ['owner', 'groups', 'users', 'everyone'],
      'Who may see and call the agent besides its owner.',
    ),
    groups: Type.Optional(list(sharedWithMax, 'Group names. Requires the kind `groups`.')),
    users: Type.Optional(list(sharedWithMax, 'Token subjects. Requires the kind `users`.')),
  },
  { description: 'Whom the agent is shared with.' },
)

const functionTool = strict({
  type: Type.Literal('function'),
  name: Type.String({
    pattern: '^[a-zA-Z0-9_-]{1,64}$',
    description: 'a name of 1 to 64 letters, digits, underscores or dashes',
  }),
  description: Type.Optional(text(toolDescriptionCharsMax, 'For the model.')),
  parameters: Type.Optional(
    Type.Unsafe<JsonObject>(Type.Object({}, { description: 'A JSON Schema.' })),
  ),
  strict: Type.Optional(
    Type.Boolean({ description: 'Whether arguments must conform to the schema.' }),
  ),
})

const mcpTool = strict({
  type: Type.Literal('mcp'),
  server_label: Type.String({
    pattern: '^[a-zA-Z][a-zA-Z0-9_-]{0,63}$',
    description: 'a label: a letter, and up to 63 letters, digits, underscores or dashes',
  }),
  allowed_tools: Type.Optional(list(allowedToolsMax, 'Names of its tools; absent: all.')),
  require_approval: Type.Optional(
    oneOf(['always', 'never'], 'Whether the client must approve each call; absent: `always`.'),
  ),
})

const toolsOptions = {
  maxItems: toolsMax,
  description: 'Functions, which the client runs, and configured MCP servers, by label.',
}

/** As in the response, whose collections can be sent back. */
const collectionReference = strict({
  id: nonEmpty(itemCharsMax),
  name: Type.Optional(Type.Union([Type.String(), Type.Null()])),
})

const agentFields = {
  name: Type.Optional(nonEmpty(nameCharsMax, { description: 'A display name on one line.' })),
  description: Type.Optional(text(descriptionCharsMax, 'The purpose of the agent.')),
  model: Type.Optional(
    nonEmpty(modelCharsMax, { description: 'A model that generates text, not an agent.' }),
  ),
  instructions: Type.Optional(
    text(instructionsCharsMax, 'Precede the instructions of the request.'),
  ),
  tools: Type.Optional(Type.Array(Type.Union([functionTool, mcpTool]), toolsOptions)),
  collections: Type.Optional(
    Type.Array(Type.Union([nonEmpty(referenceCharsMax), collectionReference]), {
      maxItems: collectionsMax,
      description:
        'Collections to search, by id, `owner/name` or name. The agent keeps their ids. Callers find what they may read themselves.',
    }),
  ),
  sampling: Type.Optional(sampling),
  speech: Type.Optional(speech),
  visibility: Type.Optional(visibility),
}

/** A body without nulls. */
export const agentBody = strict(agentFields)
export type AgentFields = Static<typeof agentBody>

const documentedFields = {
  ...agentFields,
  tools: Type.Optional(
    Type.Array(Type.Union([withNulls(functionTool), withNulls(mcpTool)]), toolsOptions),
  ),
  sampling: Type.Optional(withNulls(sampling)),
  speech: Type.Optional(withNulls(speech)),
  visibility: Type.Optional(withNulls(visibility)),
}
export const agentChange = withNulls(strict(documentedFields, { $id: 'AgentChange' }))
export const newAgent = withNulls(
  strict(
    {
      ...documentedFields,
      name: Type.Optional(agentFields.name, false),
      model: Type.Optional(agentFields.model, false),
    },
    { $id: 'NewAgent' },
  ),
)
