import type { Answer } from './answer.ts'
import type { Attachment } from './attachments.ts'
import { parseFormat, parseTools, type Settings } from './settings.ts'
import type { JsonObject } from './surface.ts'

/** What the user sent: a text with attachments, or the results of tool calls. */
export type Question = {
  readonly text: string
  readonly attachments: readonly Attachment[]
  readonly results: readonly { readonly callId: string; readonly output: string }[]
}

export type Turn = { readonly id: string; readonly question: Question; readonly answer: Answer }

/** The default of the Messages surface, which needs a limit. */
const maxTokensDefault = 4096
const thinkingTokens = { minimal: 1024, low: 1024, medium: 4096, high: 16_384 } as const

export function buildRequest(settings: Settings, turns: readonly Turn[], question: Question) {
  return settings.surface === 'responses'
    ? responsesRequest(settings, turns, question)
    : messagesRequest(settings, turns, question)
}

function responsesRequest(
  settings: Settings,
  turns: readonly Turn[],
  question: Question,
): JsonObject {
  const previous = turns.at(-1)?.answer
  const isContinued = settings.isStored && previous?.surface === 'responses' && hasEnded(previous)
  const earlier = isContinued ? [] : turns.flatMap((turn) => earlierItems(turn))
  const items = [...earlier, ...questionItems(question)]
  const tools = parseTools(settings.tools)
  if (settings.collection !== '') {
    tools.push({ type: 'file_search', vector_store_ids: [settings.collection] })
  }
  const schema = parseFormat(settings.format)
  const [only] = items
  const isPlain = items.length === 1 && typeof only?.['content'] === 'string'
  return {
    model: settings.model,
    input: isPlain ? only?.['content'] : items,
    ...(isContinued ? { previous_response_id: previous.responseId } : {}),
    ...(settings.instructions === '' ? {} : { instructions: settings.instructions }),
    ...(settings.effort === '' ? {} : { reasoning: { effort: settings.effort, summary: 'auto' } }),
    ...numbers(settings, 'max_output_tokens'),
    ...(tools.length === 0 ? {} : { tools }),
    ...(settings.collection === '' ? {} : { include: ['file_search_call.results'] }),
    ...(schema === null
      ? {}
      : { text: { format: { type: 'json_schema', name: 'result', schema, strict: true } } }),
    ...(settings.isStored ? {} : { store: false }),
    stream: true,
  }
}

const hasEnded = ({ status, responseId }: Answer) =>
  responseId !== null && (status === 'completed' || status === 'incomplete')

function numbers({ temperature, maxTokens }: Settings, limit: string): JsonObject {
  return {
    ...(temperature === '' ? {} : { temperature: Number(temperature) }),
    ...(maxTokens === '' ? {} : { [limit]: Number(maxTokens) }),
  }
}

function questionItems({ text, attachments, results }: Question): JsonObject[] {
  const outputs = results.map(({ callId, output }) => ({
    type: 'function_call_output',
    call_id: callId,
    output,
  }))
  if (text === '' && attachments.length === 0) return outputs
  const content =
    attachments.length === 0
      ? text
      : [
          ...attachments.map(({ name, type, dataUrl }) =>
            type.startsWith('image/')
              ? { type: 'input_image', image_url: dataUrl, detail: 'auto' }
              : { type: 'input_file', filename: name, file_data: dataUrl },
          ),
          { type: 'input_text', text },
        ]
  return [...outputs, { role: 'user', content }]
}

/** A finished turn as input, for a conversation that the gateway does not store. */
function earlierItems({ question, answer }: Turn): JsonObject[] {
  const said = answer.parts.flatMap((part): JsonObject[] => {
    if (part.kind === 'text') return [{ role: 'assistant', content: part.text }]
    if (part.kind !== 'call') return []
    const { callId, name, args } = part
    return [{ type: 'function_call', call_id: callId, name, arguments: args }]
  })
  return [...questionItems(question), ...said]
}

function messagesRequest(
  settings: Settings,
  turns: readonly Turn[],
  question: Question,
): JsonObject {
  const { effort } = settings
  const budget = effort === '' ? null : thinkingTokens[effort]
  const maxTokens = settings.maxTokens === '' ? maxTokensDefault : Number(settings.maxTokens)
  const tools = parseTools(settings.tools).map(({ name, description, parameters, ...rest }) =>
    rest['type'] === 'function'
      ? { name, description, input_schema: parameters }
      : { name, ...rest },
  )
  const schema = parseFormat(settings.format)
  return {
    model: settings.model,
    max_tokens: budget === null ? maxTokens : Math.max(maxTokens, budget + 1024),
    ...(settings.instructions === '' ? {} : { system: settings.instructions }),
    messages: [
      ...turns.flatMap(({ question: asked, answer }) => [
        { role: 'user', content: messageContent(asked) },
        ...(answer.parts.length === 0
          ? []
          : [{ role: 'assistant', content: assistantBlocks(answer) }]),
      ]),
      { role: 'user', content: messageContent(question) },
    ],
    ...(settings.temperature === '' ? {} : { temperature: Number(settings.temperature) }),
    ...(budget === null ? {} : { thinking: { type: 'enabled', budget_tokens: budget } }),
    ...(tools.length === 0 ? {} : { tools }),
    ...(schema === null ? {} : { output_config: { format: { type: 'json_schema', schema } } }),
    stream: true,
  }
}

/** The blocks as they came, with the signatures of reasoning; texts of the other surface as text. */
function assistantBlocks(answer: Answer): JsonObject[] {
  if (answer.blocks.length > 0) return answer.blocks.filter((block) => block['text'] !== '')
  return answer.parts.flatMap((part): JsonObject[] => {
    if (part.kind === 'text') return [{ type: 'text', text: part.text }]
    if (part.kind !== 'call') return []
    return [
      { type: 'tool_use', id: part.callId, name: part.name, input: JSON.parse(part.args || '{}') },
    ]
  })
}

function messageContent({ text, attachments, results }: Question): unknown {
  if (attachments.length === 0 && results.length === 0) return text
  return [
    ...results.map(({ callId, output }) => ({
      type: 'tool_result',
      tool_use_id: callId,
      content: output,
    })),
    ...attachments.map(({ name, type, dataUrl }) => {
      const source = { type: 'base64', media_type: type, data: dataUrl.split(',')[1] ?? '' }
      return type.startsWith('image/')
        ? { type: 'image', source }
        : { type: 'document', title: name, source }
    }),
    ...(text === '' ? [] : [{ type: 'text', text }]),
  ]
}
