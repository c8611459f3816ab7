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
    'Whether system messages may come after the first message; otherwise the user says them.',
    false,
  ),
  prefill: Type.Union(
    [
      Type.Literal('none'),
      Type.Literal('automatic'),
      Type.Literal('continue_final_message'),
      Type.Literal('prefix'),
    ],
    {
      description:
        'How a chat upstream goes on from an assistant message at the end: never, by itself (llama.cpp, Ollama), by continue_final_message (vLLM, SGLang), or by prefix (DeepSeek, Mistral).',
      default: 'none',
    },
  ),
  developerRole: flag('Whether the role developer is known; otherwise system is sent.', false),
  strictTools: flag('Whether strict tool and output schemas are enforced there.', false),
  thinkTags: flag('Whether reasoning comes as <think>…</think> inside the text.', false),
  vendorFields: flag(
    'Whether prompt_cache_key, safety_identifier, service_tier and billing texts may be sent.',
    false,
  ),
  files: flag('Whether content parts of type file, or documents, are understood.', false),
  keyHeader: Type.Union([Type.Literal('x-api-key'), Type.Literal('authorization')], {
    description: 'The header that carries the credential of a messages upstream.',
    default: 'x-api-key',
  }),
  thinking: Type.Union([Type.Literal('adaptive'), Type.Literal('budget'), Type.Literal('none')], {
    description: 'How a messages upstream is asked to think: by effort, by tokens, or never.',
    default: 'budget',
  }),
  outputFormat: flag('Whether a messages upstream understands output_config.format.', false),
  defaultMaxTokens: whole(
    'The max_tokens that a messages upstream is sent where the caller set no limit.',
    { default: 32_000, minimum: 1 },
  ),
  rerankFields: Type.Union([Type.Literal('documents'), Type.Literal('texts')], {
    description:
      'What /rerank takes: documents (Cohere, Jina, vLLM), or texts (text-embeddings-inference).',
    default: 'documents',
  }),
  tokenCounter: Type.Union(
    [Type.Literal('none'), Type.Literal('native'), Type.Literal('vllm'), Type.Literal('llama.cpp')],
    {
      description:
        'How it counts tokens if asked: as its protocol says (responses, messages), or as these servers do (chat).',
      default: 'none',
    },
  ),
}

/** An `[[upstream]]` of the file. */
export const upstreamEntry = entry('An inference endpoint behind the gateway.', {
  name: text('How the log and [[model]] entries call it; unique.'),
  url: Type.Optional(
    text(
      'Base URL, up to and with /v1 (for api = "messages" also without). Not for api = "demo" and "llama".',
    ),
  ),
  // The adapters' registry lists the values and checks them: `upstreamFaults` in inference.
  api: text(
    'The protocol that it speaks; "demo" is built in, and "llama" runs installed models here.',
    { default: 'chat' },
  ),
  key: Type.Optional(
    text('Its credential, sent as a bearer token or as key_header says.', { secret: true }),
  ),
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
  queryPrefix: Type.Optional(
    text('What a model of mode embed wants before a text that is asked, such as "query: ".'),
  ),
  passagePrefix: Type.Optional(
    text('What a model of mode embed wants before a text that is kept, such as "passage: ".'),
  ),
  tokenizer: Type.Optional(
    text('The path of its tokenizer.json, by which its tokens are counted here.'),
  ),
})
