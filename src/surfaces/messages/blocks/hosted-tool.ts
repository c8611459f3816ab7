import type { HostedToolItem } from '#inference/events.ts'
import { newId } from '#lib/id.ts'
import { asRecord, isRecord, parseJson } from '#lib/json.ts'
import type { ContentBlock } from '#surfaces/messages/message.ts'
import type { BlockContext, BlockSink, EventOf, OpenBlock } from './block.ts'

/**
 * A tool that ran on this side of the caller: a block for the call and one for its result where the
 * format has them, and otherwise nothing, because clients fail at blocks that they do not know.
 */
export function openHostedTool(
  { item }: EventOf<'hosted-tool-start'>,
  context: BlockContext,
): OpenBlock {
  if (item.type === 'mcp_call') return openMcpCall(item)
  if (item.type === 'web_search_call') return openWebSearch(context)
  return untold
}

/** What the format has no words for, or what was told in other words. */
export const untold: OpenBlock = { start: () => '', push: () => '', end: () => '' }

function openMcpCall(item: HostedToolItem): OpenBlock {
  const id = newId('mcptoolu_')
  let args = readText(item['arguments'])
  let isTold = false

  const tell = (sink: BlockSink, given: string): string => {
    if (isTold) return ''
    isTold = true
    return whole(sink, {
      type: 'mcp_tool_use',
      id,
      name: readText(item['name']),
      server_name: readText(item['server_label']),
      // Not in deltas: most clients read the input of this kind of block where it begins.
      input: asRecord(parseJson(given)),
    })
  }
  return {
    start: () => '',
    push(sink, event) {
      if (event.type === 'hosted-tool-delta') args += event.text
      return event.type === 'hosted-tool-progress' && event.stage === 'calling'
        ? tell(sink, args)
        : ''
    },
    end(sink, event) {
      const ended = event.type === 'hosted-tool-end' ? event.item : null
      if (ended === null) return ''
      const { arguments: given, error } = ended
      return (
        tell(sink, typeof given === 'string' ? given : args) +
        whole(sink, {
          type: 'mcp_tool_result',
          tool_use_id: id,
          is_error: isRecord(error) || typeof error === 'string',
          content: [{ type: 'text', text: readOutcome(ended) }],
        })
      )
    },
  }
}

function readOutcome({ output, error }: HostedToolItem): string {
  if (typeof error === 'string') return error
  if (!isRecord(error)) return readText(output)
  const content = Array.isArray(error['content']) ? error['content'] : []
  const texts = content.map((part) => readText(asRecord(part)['text']))
  return texts.length > 0 ? texts.join('\n') : readText(error['message'])
}

/** What was searched for is known at the end; other actions of such a tool are not told. */
function openWebSearch({ tally }: BlockContext): OpenBlock {
  return {
    start: () => '',
    push: () => '',
    end(sink, event) {
      const action = event.type === 'hosted-tool-end' ? asRecord(event.item?.['action']) : {}
      if (action['type'] !== 'search') return ''
      tally.webSearches++
      const id = newId('srvtoolu_')
      const input = JSON.stringify({ query: readText(action['query']) })
      const sources = Array.isArray(action['sources']) ? action['sources'] : []
      return (
        sink.start({ type: 'server_tool_use', id, name: 'web_search', input: {}, ...direct }) +
        sink.delta('input_json_delta', input) +
        sink.stop() +
        whole(sink, {
          type: 'web_search_tool_result',
          tool_use_id: id,
          content: sources.flatMap(renderSource),
          ...direct,
        })
      )
    },
  }
}

const direct = { caller: { type: 'direct' } }

function renderSource(source: unknown): object[] {
  const { url, title } = asRecord(source)
  if (typeof url !== 'string') return []
  const named = typeof title === 'string' ? title : url
  return [{ type: 'web_search_result', url, title: named, encrypted_content: '', page_age: null }]
}

function whole(sink: BlockSink, block: ContentBlock): string {
  return sink.start(block) + sink.stop()
}

function readText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
