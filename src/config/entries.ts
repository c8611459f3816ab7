import { Type } from '@sinclair/typebox'
import { entry, flag, text, whole } from './keys.ts'

const quirks = {
  maxTokensField: Type.Union([Type.Literal('max_tokens'), Type.Literal('max_completion_tokens')], {
    description: 'The field that limits the output of a chat upstream.',
    default: 'max_tokens',
  }),
  reasoningFields: Type.Array(
    Type.Union([Type.Literal('reasoning'), Type.Literal('reasoning_content')]),
    {
      description:
        'The fields under which earlier reasoning is sent back; an empty list sends none.',
      default: ['reasoning', 'reasoning_content'],
    },
  ),
  reasoningEffort: Type.Union(
    [Type.Literal('reasoning_effort'), Type.Literal('enable_thinking'), Type.Literal('none')],
    { description: 'How a reasoning effort is asked for.', default: 'reasoning_effort' },
  ),
  streamUsage: flag('Whether stream_options.include_usage may be sent.', true),
  lateSystemMessages: flag(
    'Whether the chat template takes system messages after the first message.',
    false,
  ),
  developerRole: flag('Whether the role developer is known; otherwise system is sent.', false),
  strictTools: flag('Whether strict tool and output schemas are enforced there.', false),
  thinkTags: flag('Whether reasoning comes as <think>…</think> inside the text.', false),
  vendorFields: flag(
    'Whether prompt_cache_key, safety_identifier and service_tier may be sent.',
    false,
  ),
  files: flag('Whether chat content parts of type file are understood.', false),
}

/** An `[[upstream]]` of the file. */
export const upstreamEntry = entry('An inference endpoint behind the gateway.', {
  name: text('How the log and [[model]] entries call it; unique.'),
  url: Type.Optional(text('Base URL, up to and with /v1. Not for api = "demo".')),
  api: Type.Union([Type.Literal('chat'), Type.Literal('responses'), Type.Literal('demo')], {
    description: 'The protocol that it speaks.',
    default: 'chat',
  }),
  key: Type.Optional(text('Its credential, sent as a bearer token.', { secret: true })),
  keyEnv: Type.Optional(text('The environment variable that holds the credential.')),
  headers: Type.Record(Type.String(), Type.String(), {
    description: 'Further request headers.',
    default: {},
    secret: true,
  }),
  models: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description: 'The models to offer from it. Without it, its own /models is asked.',
    }),
  ),
  weight: whole('Its share of the requests among equally placed upstreams of a model.', {
    default: 1,
    minimum: 1,
  }),
  ...quirks,
})

/** A `[[model]]` of the file. */
export const modelEntry = entry('A model under a name of your own.', {
  name: text('The name that callers use.'),
  mode: Type.Union(
    [
      Type.Literal('generate'),
      Type.Literal('embed'),
      Type.Literal('rerank'),
      Type.Literal('transcribe'),
    ],
    { description: 'What it does.', default: 'generate' },
  ),
  upstreams: Type.Array(Type.String({ minLength: 1 }), {
    description: 'The upstreams that serve it, in order of preference.',
    minItems: 1,
  }),
  upstreamModel: Type.Optional(text('Its name at the upstreams, if it differs.')),
  aliases: Type.Array(Type.String({ minLength: 1 }), {
    description: 'Further names that resolve to it and are not listed.',
    default: [],
  }),
  capabilities: Type.Array(Type.String({ minLength: 1 }), {
    description: 'Free words shown in the model list: vision, tools, reasoning.',
    default: [],
  }),
  contextWindow: Type.Optional(
    Type.Integer({ description: 'Its context window in tokens.', minimum: 1 }),
  ),
})
