import type { RequestContext } from '#lib/request-context.ts'
import type { Span } from '#lib/trace.ts'
import { boundedContent } from '#lib/trace-content.ts'
import type { HostedCall, HostedOutcome } from './hosted-tools.ts'

/** The span of a call that the gateway runs, or of a list of tools; null where none is sampled. */
export function startToolSpan(
  { trace }: Pick<RequestContext, 'trace'>,
  call: HostedCall,
  args: string,
): Span | null {
  if (trace?.span == null) return null
  const item = call.begin(args)
  const name = typeof item['name'] === 'string' ? item['name'] : item.type
  const server = item['server_label']
  const span = trace.span.startChild(`execute_tool ${name}`, {
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': name,
      'gen_ai.tool.type': 'extension',
      'sluice.tool.item': item.type,
      'sluice.mcp.server': typeof server === 'string' ? server : undefined,
    },
  })
  if (span.content !== null) {
    span.set({ 'gen_ai.tool.call.arguments': boundedContent(args, span.content) })
  }
  return span
}

export function noteOutcome(span: Span, { item, result }: HostedOutcome): void {
  if (item['error'] != null || item['status'] === 'failed') {
    span.fail('tool_error', 'The tool failed.')
  }
  if (span.content !== null && result !== null) {
    span.set({ 'gen_ai.tool.call.result': boundedContent(result, span.content) })
  }
}
