import { describe, expect, test } from 'bun:test'
import { recordedPayloads, recordedStreamNames } from '#test/support/recordings.ts'
import { type Block, blocksOf, decode } from './decoding.ts'

/** A deterministic generator (Numerical Recipes' linear congruential generator). */
function createDice(seed: number) {
  let state = seed
  const roll = () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
  return {
    upTo: (count: number) => Math.floor(roll() * count),
    chance: (share: number) => roll() < share,
  }
}

describe('a recorded stream with events lost, repeated and swapped', () => {
  const manglingsEach = 40

  test.each(recordedStreamNames('responses'))('%s never breaks the order of events', (name) => {
    const payloads = recordedPayloads('responses', name)
    const kinds = new Set<string>()
    for (let seed = 0; seed < manglingsEach; seed++) {
      const dice = createDice(seed)
      const mangled = payloads.flatMap((payload) =>
        dice.chance(0.1) ? [] : dice.chance(0.1) ? [payload, payload] : [payload],
      )
      for (let swaps = dice.upTo(20); swaps > 0; swaps--) {
        const [one, other] = [dice.upTo(mangled.length), dice.upTo(mangled.length)]
        const [a, b] = [mangled[one], mangled[other]]
        if (a !== undefined && b !== undefined) [mangled[one], mangled[other]] = [b, a]
      }
      // `decode` checks the events against the grammar and throws on violations.
      kinds.add(decode(mangled).error?.kind ?? 'none')
    }
    expect([...kinds]).not.toContain('internal_error')
  })
})

type Deviations = {
  ids: 'kept' | 'rotating' | 'absent'
  indices: 'kept' | 'absent' | 'zero'
  announces: boolean
  deltas: boolean
  endsText: boolean
  endsItems: 'at once' | 'at the end' | 'never'
  repeatsOutput: boolean
}

/** Every combination of deviations that still identifies items and carries all their text. */
function allDeviations(): Deviations[] {
  const either = [true, false]
  return (['kept', 'rotating', 'absent'] as const)
    .flatMap((ids) => (['kept', 'absent', 'zero'] as const).map((indices) => ({ ids, indices })))
    .flatMap((deviations) => either.map((announces) => ({ ...deviations, announces })))
    .flatMap((habits) => either.map((deltas) => ({ ...habits, deltas })))
    .flatMap((habits) => either.map((endsText) => ({ ...habits, endsText })))
    .flatMap((habits) => either.map((repeatsOutput) => ({ ...habits, repeatsOutput })))
    .flatMap((habits) =>
      (['at once', 'at the end', 'never'] as const).map((endsItems) => ({ ...habits, endsItems })),
    )
    .filter((habits) => {
      const named = habits.ids === 'kept' || habits.indices === 'kept'
      const emitsText = habits.deltas || habits.endsText || habits.endsItems !== 'never'
      if (habits.endsItems === 'at once') return true
      return habits.announces && named && emitsText && habits.deltas
    })
}

describe('deviations of servers', () => {
  const said: readonly Block[] = [
    { reasoning: ['First, a thought.'] },
    { text: 'Let me add.' },
    { call: 'add', id: 'call_2', input: '{"a":1}' },
    { call: 'add', id: 'call_3', input: '{"a":22}' },
    { text: 'Both were added.' },
  ]

  test.each(allDeviations().map((habits) => [JSON.stringify(habits), habits] as const))(
    'is decoded: %s',
    (_, habits) => {
      expect(blocksOf(decode(streamOf(said, habits)))).toEqual([...said])
    },
  )
})

const names = {
  message: ['response.output_text', 'text'],
  reasoning: ['response.reasoning_text', 'text'],
  function_call: ['response.function_call_arguments', 'arguments'],
} as const

function streamOf(said: readonly Block[], habits: Deviations): unknown[] {
  let used = 0
  const idOf = (place: number) => (habits.ids === 'kept' ? `item_${place}` : `item_r${used++}`)
  const index = (place: number) =>
    habits.indices === 'absent' ? {} : { output_index: habits.indices === 'kept' ? place : 0 }
  const item = (block: Block, place: number, isWhole: boolean) => ({
    ...itemOf(block, isWhole),
    ...(habits.ids === 'absent' ? {} : { id: idOf(place) }),
  })
  const late: unknown[] = []
  const payloads = said.flatMap((block, place) => {
    const { type, whole } = itemOf(block, true)
    const [name, field] = names[type]
    const at = () => ({
      ...(habits.ids === 'absent' ? {} : { item_id: idOf(place) }),
      ...index(place),
    })
    const announcement = { type: 'response.output_item.added', ...index(place) }
    const end = {
      type: 'response.output_item.done',
      ...index(place),
      item: item(block, place, true),
    }
    if (habits.endsItems === 'at the end') late.push(end)
    const pieces = whole.match(/.{1,4}/g) ?? []
    return [
      ...(habits.announces ? [{ ...announcement, item: item(block, place, false) }] : []),
      ...(habits.deltas ? pieces.map((delta) => ({ type: `${name}.delta`, ...at(), delta })) : []),
      ...(habits.endsText ? [{ type: `${name}.done`, ...at(), [field]: whole }] : []),
      ...(habits.endsItems === 'at once' ? [end] : []),
    ]
  })
  const output = said.map((block, place) => item(block, place, true))
  const response = { status: 'completed', ...(habits.repeatsOutput ? { output } : {}) }
  return [...payloads, ...late, { type: 'response.completed', response }]
}

function itemOf(block: Block, isWhole: boolean) {
  if ('text' in block) {
    const content = isWhole ? [{ type: 'output_text', text: block.text, annotations: [] }] : []
    return { type: 'message' as const, whole: block.text, content }
  }
  if ('reasoning' in block) {
    const whole = block.reasoning.join('')
    const content = isWhole ? [{ type: 'reasoning_text', text: whole }] : []
    return { type: 'reasoning' as const, whole, summary: [], content }
  }
  if (!('call' in block)) throw new Error('not made here')
  const { call, id, input } = block
  return {
    type: 'function_call' as const,
    whole: input,
    name: call,
    call_id: id,
    arguments: isWhole ? input : '',
  }
}
