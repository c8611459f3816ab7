import type { HostedToolItem } from '#inference/events.ts'
import { newId } from '#lib/id.ts'
import { asRecord, isRecord, parseJson } from '#lib/json.ts'
import type { BlockContext, BlockSink, EventOf, OpenBlock } from './blocks.ts'
import type { ContentBlock } from './message.ts'

/** Items without output of their own: the model has used what they hold. */
const silentItems: ReadonlySet<string> = new Set([
  'compaction',
  'file_search_call',
  'mcp_list_tools',
])

/**
 * A tool that the gateway or the upstream runs: a block for the call and one for the result if the
 * format has them, otherwise null, because clients fail on unknown blocks; the tally names its output.
 */
export function openHostedTool(
  { item }: EventOf<'hosted-tool-start'>,
  context: BlockContext,
): OpenBlock | null {
  if (item.type === 'mcp_call') return openMcpCall(item)
  if (item.type === 'web_search_call') return openWebSearch(context)
  if (!silentItems.has(item.type)) context.tally.omitted.add(item.type)
  return null
}

function openMcpCall(item: HostedToolItem): OpenBlock {
  const id = newId('mcptoolu_')
  let args = readText(item['arguments'])
  let isWritten = false

  const writeCall = (sink: BlockSink, json: string): string => {
    if (isWritten) return ''
    isWritten = true
    return whole(sink, {
      type: 'mcp_tool_use',
      id,
      name: readText(item['name']),
      server_name: readText(item['server_label']),
      // Not as deltas: most clients read the input of this block type from its start.
      input: asRecord(parseJson(json)),
    })
  }
  return {
    push(sink, event) {
      if (event.type === 'hosted-tool-delta') args += event.text
      return event.type === 'hosted-tool-progress' && event.stage === 'calling'
        ? writeCall(sink, args)
        : ''
    },
    end(sink, event) {
      const ended = event.type === 'hosted-tool-end' ? event.item : null
      if (ended === null) return ''
      const { arguments: finalArgs, error } = ended
      return (
        writeCall(sink, typeof finalArgs === 'string' ? finalArgs : args) +
        whole(sink, {
          type: 'mcp_tool_result',
          tool_use_id: id,
          is_error: isRecord(error) || typeof error === 'string',
          content: [{ type: 'text', text: resultText(ended) }],
        })
      )
    },
  }
}

function resultText({ output, error }: HostedToolItem): string {
  if (typeof error === 'string') return error
  if (!isRecord(error)) return readText(output)
  const content = Array.isArray(error['content']) ? error['content'] : []
  const texts = content.map((part) => readText(asRecord(part)['text']))
  return texts.length > 0 ? texts.join('\n') : readText(error['message'])
}

/** The query is known at the end. Other actions than searches have no representation. */
function openWebSearch({ tally }: BlockContext): OpenBlock {
  return {
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
