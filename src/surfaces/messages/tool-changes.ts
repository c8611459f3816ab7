import { asRecord, isRecord } from '#lib/json.ts'

/** One change of the tools during a conversation. */
export type ToolChange = {
  readonly kind: 'addition' | 'removal'
  readonly name: string
  /** A tool that the change itself defines, as an entry of `tools`. */
  readonly definition: { readonly value: unknown; readonly path: string } | null
}

/**
 * The changes of the tools in system messages and compactions, in order. Upstreams of this protocol get
 * them as they are; for all others, the tools in effect at the end of the conversation count. References
 * to tools of MCP servers are skipped: only upstreams of this protocol have them.
 */
export function readToolChanges(messages: readonly unknown[]): ToolChange[] {
  const changes: ToolChange[] = []
  messages.forEach((message, index) => {
    const content = isRecord(message) ? message['content'] : null
    if (!Array.isArray(content)) return
    content.forEach((block: unknown, at) => {
      if (!isRecord(block)) return
      const path = `messages.${index}.content.${at}`
      if (block['type'] !== 'compaction') changes.push(...readChange(block, path))
      else {
        list(block['tool_changes']).forEach((change, position) => {
          changes.push(...readChange(asRecord(change), `${path}.tool_changes.${position}`))
        })
      }
    })
  })
  return changes
}

function readChange(block: Record<string, unknown>, path: string): ToolChange[] {
  const { type, name: ownName } = block
  if (type !== 'tool_addition' && type !== 'tool_removal') return []
  const { type: form, name: toolName, definition } = asRecord(block['tool'])
  const isDefinition = type === 'tool_addition' && form === 'tool_definition'
  const name = isDefinition ? asRecord(definition)['name'] : (toolName ?? ownName)
  if (typeof name !== 'string' || String(form).startsWith('mcp_')) return []
  return [
    {
      kind: type === 'tool_addition' ? 'addition' : 'removal',
      name,
      definition: isDefinition ? { value: definition, path: `${path}.tool.definition` } : null,
    },
  ]
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
