import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import type { HookText, HookTextKind } from './hook.ts'
import { mapJson } from './request-texts.ts'

/** A text, and the events that it consists of. */
type Group = { readonly kind: HookTextKind; readonly at: number[]; text: string }

/** The texts of one generation, as far as hooks read and replace them. */
export class OutputTexts {
  /** The kinds of texts by block. */
  readonly #kinds = new Map<number, HookTextKind>()
  /** Blocks with a text of a hook: what the upstream said of the text itself is not true any more. */
  readonly #changed = new Set<number>()

  /** The texts of these events: all deltas of a block as one. */
  read(events: EventBatch): { texts: HookText[]; replace(texts: readonly string[]): EventBatch } {
    const groups: Group[] = []
    const byKey = new Map<string, Group>()
    for (const [at, event] of events.entries()) {
      if (event.type === 'text-start') {
        this.#kinds.set(event.block, event.form === 'refusal' ? 'refusal' : 'assistant')
      }
      const found = this.#textOf(event)
      if (found === null) continue
      const { key, kind, text } = found
      const known = key === null ? undefined : byKey.get(key)
      if (known !== undefined) {
        known.at.push(at)
        known.text += text
        continue
      }
      const group = { kind, text, at: [at] }
      groups.push(group)
      if (key !== null) byKey.set(key, group)
    }
    const texts = groups.map(({ kind, text }) => ({ kind, text }))
    return { texts, replace: (given) => this.#replace(events, groups, given) }
  }

  /** The events without what replaced texts have made untrue. */
  clean(events: EventBatch): EventBatch {
    if (this.#changed.size === 0) return events
    return events.flatMap((event): GenerationEvent[] => {
      if (!('block' in event) || !this.#changed.has(event.block)) return [event]
      if (event.type === 'citation') return []
      if (event.type !== 'reasoning-end') return [event]
      const { type, block, complete } = event
      return [{ type, block, complete }]
    })
  }

  #textOf(event: GenerationEvent): { key: string | null; kind: HookTextKind; text: string } | null {
    switch (event.type) {
      case 'text-delta': {
        const kind = this.#kinds.get(event.block) ?? 'assistant'
        return { key: `${event.block}`, kind, text: event.text }
      }
      case 'reasoning-delta':
        return { key: `${event.block}/${event.part}`, kind: 'reasoning', text: event.text }
      case 'tool-call-delta':
        return { key: `${event.block}`, kind: 'tool-call', text: event.text }
      case 'hosted-tool-delta':
        return { key: `${event.block}`, kind: 'hosted-tool', text: event.text }
      case 'citation':
        return { key: null, kind: 'citation', text: JSON.stringify(event.citation) }
      case 'hosted-tool-start':
      case 'hosted-tool-end':
        if (event.item === null) return null
        return { key: null, kind: 'hosted-tool', text: JSON.stringify(event.item) }
      case 'hosted-tool-event':
        return { key: null, kind: 'hosted-tool', text: JSON.stringify(event.fields) }
      default:
        return null
    }
  }

  #replace(events: EventBatch, groups: readonly Group[], texts: readonly string[]): EventBatch {
    const replaced: (GenerationEvent | null)[] = [...events]
    for (const [index, { at, text }] of groups.entries()) {
      const given = texts[index] ?? text
      const [first = -1, ...others] = at
      const event = replaced[first]
      if (given === text || event === undefined || event === null) continue
      if ('text' in event) this.#changed.add(event.block)
      replaced[first] = withText(event, given)
      for (const other of others) replaced[other] = null
    }
    return replaced.filter((event) => event !== null)
  }
}

/** Null: nothing is left of the event. */
function withText(event: GenerationEvent, text: string): GenerationEvent | null {
  switch (event.type) {
    case 'text-delta':
      return text === '' ? null : { type: event.type, block: event.block, text }
    case 'reasoning-delta':
    case 'tool-call-delta':
    case 'hosted-tool-delta':
      return text === '' ? null : { ...event, text }
    case 'citation':
      return { ...event, citation: mapJson(event.citation, () => text) }
    case 'hosted-tool-start':
      return { ...event, item: mapJson(event.item, () => text) }
    case 'hosted-tool-end':
      return event.item === null ? event : { ...event, item: mapJson(event.item, () => text) }
    case 'hosted-tool-event':
      return { ...event, fields: mapJson(event.fields, () => text) }
    default:
      return event
  }
}
