import { expect, test } from 'bun:test'
import { createDice } from '#test/support/dice.ts'
import { hearEngines } from '#test/support/heard-recognition.ts'
import { createScriptedEngine, type Script } from '#test/support/scripted-engine.ts'
import { speak } from '#test/support/spoken-numbers.ts'

type Dice = ReturnType<typeof createDice>

const rounds = 30

test('however engines break off, reach limits and audio is cut, every word is told once, at its time', async () => {
  for (let seed = 1; seed <= rounds; seed += 1) {
    const dice = createDice(seed)
    const { samples, words } = talk(dice)
    const engine = createScriptedEngine({
      scripts: crashes(dice),
      wavers: dice.upTo(2) === 0,
      wordsMax: 3 + dice.upTo(20),
      takeMs: 50 + dice.upTo(800),
      sessionMsMax: dice.upTo(2) === 0 ? 4_000 + dice.upTo(4_000) : 480_000,
      sessionsMax: 1 + dice.upTo(2),
    })
    const heard = await hearEngines({ engines: [engine] })
    const asked = await writeAndAsk(heard, samples, dice)
    const ending = await heard.end()

    const told = heard.finals().flatMap((final) => final.words)
    expect(told, `seed ${seed}`).toEqual(words.map((word) => ({ ...word, confidence: null })))
    expect(ending.type, `seed ${seed}`).toBe('ended')
    expect(ending.stats.untranscribedMs, `seed ${seed}`).toBe(0)
    expect(heard.of('finalized').map(({ id }) => id)).toEqual(asked)
    const rollovers = heard.warnings().filter((code) => code === 'engine_rollover')
    expect(ending.stats.engine).toMatchObject({
      rollovers: rollovers.length,
      sessions: rollovers.length + 1,
    })
    expect(engine.running()).toBe(0)
    expect(engine.inFlightMsMax()).toBeLessThanOrEqual(2_000)
  }
}, 60_000)

test('what does not fit into the replay is lost with its engine, and named exactly', async () => {
  let lostMs = 0
  for (let seed = 1; seed <= rounds; seed += 1) {
    const dice = createDice(seed)
    const { samples, words } = talk(dice)
    const engine = createScriptedEngine({ scripts: crashes(dice), takeMs: 50 + dice.upTo(800) })
    const settings = { replayMsMax: 1_000, inFlightMsMax: 300 }
    const heard = await hearEngines({ engines: [engine], settings })
    await heard.write(samples, () => 1 + dice.upTo(3_200))
    const { stats } = await heard.end()

    const told = heard.finals().flatMap((final) => final.words.map(({ word }) => word))
    const missing = words.filter(({ word }) => !told.includes(word))
    const isNamed = missing.every(({ startMs, endMs }) =>
      stats.gaps.some((gap) => gap.startMs < endMs && gap.endMs > startMs),
    )
    expect(isNamed, `seed ${seed}`).toBe(true)
    expect(told, `seed ${seed}`).toEqual(
      words.filter((word) => !missing.includes(word)).map(({ word }) => word),
    )
    const lost = heard.of('warning').filter(({ code }) => code === 'audio_lost')
    const toldMs = lost.reduce((sum, { details }) => sum + Number(details['speech_ms']), 0)
    expect(toldMs, `seed ${seed}`).toBeLessThanOrEqual(stats.untranscribedMs)
    // Speech is heard in steps of 20 ms.
    const inexactMs = stats.gaps.length * 40
    const isExact = Math.abs(stats.untranscribedMs - missing.length * 100) <= inexactMs
    expect(isExact, `seed ${seed}: ${stats.untranscribedMs} ms`).toBe(true)
    lostMs += stats.untranscribedMs
  }
  expect(lostMs).toBeGreaterThan(0)
}, 60_000)

/** About twenty seconds of utterances, with pauses that energy alone can tell. */
function talk(dice: Dice) {
  const utterances = Array.from({ length: 5 + dice.upTo(4) }, () => ({
    silenceMs: 10 * (45 + dice.upTo(120)),
    words: 1 + dice.upTo(30),
  }))
  return speak(utterances, 10 * dice.upTo(100))
}

function crashes(dice: Dice): Script[] {
  return Array.from({ length: dice.upTo(6) }, () => ({ crashAtMs: dice.upTo(9_000) }))
}

type Heard = Awaited<ReturnType<typeof hearEngines>>

/** Asks for finals between utterances now and then; returns the ids. */
async function writeAndAsk(heard: Heard, samples: Int16Array, dice: Dice): Promise<string[]> {
  const ids: string[] = []
  const pieceOf = () => {
    const length = 1 + dice.upTo(3_200)
    if (dice.upTo(60) === 0) {
      ids.push(`f${ids.length}`)
      heard.recognition.finalize(ids.at(-1) ?? '')
    }
    return length
  }
  await heard.write(samples, pieceOf)
  return ids
}
