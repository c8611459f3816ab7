import { Type } from '@sinclair/typebox'
import { choice, entry, flag, text, whole } from '#config/keys.ts'

const quirks = {
  maxTokensField: choice('The request field that limits the output of a chat upstream.', [
    'max_tokens',
    'max_completion_tokens',
  ]),
  reasoningFields: Type.Array(
    Type.Union([Type.Literal('reasoning'), Type.Literal('reasoning_content')]),
    {
      description:
        'The message fields in which earlier reasoning is sent to a chat upstream; an empty list sends none.',
      default: ['reasoning', 'reasoning_content'],
    },
  ),
  reasoningEffort: choice('How a reasoning effort is sent to a chat upstream.', [
    'reasoning_effort',
    'enable_thinking',
    'none',
  ]),
  streamUsage: flag('Whether stream_options.include_usage may be sent.', true),
  unstreamed: flag(
    'Whether responses that the client does not stream are requested without streaming; false for servers and proxies that close connections which are silent for long.',
    true,
  ),
  lateSystemMessages: flag(
    'Whether the upstream accepts system messages after the first message; otherwise they are sent as user messages.',
    false,
  ),
  prefill: choice(
    'How a chat upstream continues an assistant message at the end of the input: not at all, automatically (llama.cpp, Ollama), with continue_final_message (vLLM, SGLang), or with prefix (DeepSeek, Mistral).',
    ['none', 'automatic', 'continue_final_message', 'prefix'],
  ),
  developerRole: flag(
    'Whether the upstream accepts the role developer; otherwise system is sent.',
    false,
  ),
  strictTools: flag('Whether the upstream enforces strict tool and output schemas.', false),
  thinkTags: flag(
    'Whether the upstream returns reasoning as <think>…</think> within the text.',
    false,
  ),
  vendorFields: flag(
    'Whether prompt_cache_key, prompt_cache_options, safety_identifier, service_tier, async tools and billing texts may be sent.',
    false,
  ),
  files: flag('Whether the upstream accepts content parts of type file, or documents.', false),
  keyHeader: choice('The header that carries the credential of a messages upstream.', [
    'x-api-key',
    'authorization',
  ]),
  thinking: choice(
    'How thinking is requested from a messages upstream: by a token budget, by effort, or not at all.',
    ['budget', 'adaptive', 'none'],
  ),
  outputFormat: flag('Whether a messages upstream supports output_config.format.', false),
  defaultMaxTokens: whole(
    'The max_tokens sent to a messages upstream if the request sets no limit.',
    { default: 32_000, minimum: 1 },
  ),
  rerankFields: choice(
    'The request field of /rerank: documents (Cohere, Jina, vLLM), or texts (text-embeddings-inference).',
    ['documents', 'texts'],
  ),
  tokenCounter: choice(
    'How the upstream counts tokens: native to its protocol (responses, messages), or with the endpoint of these servers (chat).',
    ['none', 'native', 'vllm', 'llama.cpp'],
  ),
}

const accessRulesMax = 1_000

/** Which groups may use models. */
export const accessRules = (description: string) =>
  Type.Array(
    entry('The models of a name or pattern are for these groups.', {
      models: Type.String({
        description: 'Name or pattern, in which * stands for any characters.',
        minLength: 1,
      }),
      groups: Type.Array(Type.String({ minLength: 1 }), {
        description: 'Groups whose members may use these models.',
        minItems: 1,
      }),
    }),
    { description, default: [], maxItems: accessRulesMax },
  )

/** An `[[upstream]]` of the file. */
export const upstreamEntry = entry('An inference endpoint behind the gateway.', {
  name: text('Unique name, used in logs and [[model]] entries.'),
  url: Type.Optional(
    text(
      'Base URL including /v1 (optional for api = "messages"). Not used by api = "demo", "llama" and "onnx".',
    ),
  ),
  // The registry of adapters knows the values and checks them: `upstreamFaults`.
  api: text('Protocol of the upstream; docs/models.md lists them.', { default: 'chat' }),
  key: Type.Optional(
    text('Credential, sent as a bearer token or as key_header says.', { secret: true }),
  ),
  keyEnv: Type.Optional(text('Environment variable that contains the credential.')),
  headers: Type.Record(Type.String(), Type.String(), {
    description: 'Additional request headers.',
    default: {},
    secret: true,
  }),
  models: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description: 'Models to offer. By default, all models that its /models endpoint lists.',
    }),
  ),
  access: accessRules(
    'Restricts models of its list (not [[model]] entries) to groups. A model that several rules name is for the groups of all of them; one that no rule names is for everyone.',
  ),
  weight: whole('Relative share of requests among upstreams of equal priority.', {
    default: 1,
    minimum: 1,
  }),
  maxInFlight: Type.Optional(
    Type.Integer({
      description:
        'Concurrent requests to the upstream; more wait in a fair queue. The workers of a machine share the number, several machines multiply it. By default, there is no limit.',
      minimum: 1,
    }),
  ),
  ...quirks,
})
