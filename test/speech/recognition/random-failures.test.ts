import { expect, test } from 'bun:test'
import { createDice } from '#test/support/dice.ts'
import { recordEngines } from '#test/support/recognition-recorder.ts'
import { createScriptedEngine, type Script } from '#test/support/scripted-engine.ts'
import { speak } from '#test/support/spoken-numbers.ts'

type Dice = ReturnType<typeof createDice>

const rounds = 30

test('every word is transcribed once at its time despite random failures, limits and chunking', async () => {
  for (let seed = 1; seed <= rounds; seed += 1) {
    const dice = createDice(seed)
    const { samples, words } = randomSpeech(dice)
    const engine = createScriptedEngine({
      scripts: randomCrashes(dice),
      isUnstable: dice.upTo(2) === 0,
      wordsMax: 3 + dice.upTo(20),
      takeMs: 50 + dice.upTo(800),
      sessionMsMax: dice.upTo(2) === 0 ? 4_000 + dice.upTo(4_000) : 480_000,
      sessionsMax: 1 + dice.upTo(2),
    })
    const recorder = await recordEngines({ engines: [engine] })
    const requested = await writeAndFinalize(recorder, samples, dice)
    const ending = await recorder.end()

    const transcribed = recorder.finals().flatMap((final) => final.words)
    expect(transcribed, `seed ${seed}`).toEqual(
      words.map((word) => ({ ...word, confidence: null })),
    )
    expect(ending.type, `seed ${seed}`).toBe('ended')
    expect(ending.stats.untranscribedMs, `seed ${seed}`).toBe(0)
    expect(recorder.of('finalized').map(({ id }) => id)).toEqual(requested)
    const rollovers = recorder.warnings().filter((code) => code === 'engine_rollover')
    expect(ending.stats.engine).toMatchObject({
      rollovers: rollovers.length,
      sessions: rollovers.length + 1,
    })
    expect(engine.running()).toBe(0)
    expect(engine.inFlightMsMax()).toBeLessThanOrEqual(2_000)
  }
})

test('beyond the replay limit no audio is lost in a failure if the engine can be asked for finals', async () => {
  expect(await loseAtReplayLimit(true)).toBe(0)
})

test('otherwise audio beyond the replay limit is lost in a failure and reported exactly', async () => {
  expect(await loseAtReplayLimit(false)).toBeGreaterThan(0)
})

/** Speech that was lost, in milliseconds. */
async function loseAtReplayLimit(canFinalize: boolean): Promise<number> {
  let lostMs = 0
  for (let seed = 1; seed <= rounds; seed += 1) {
    const dice = createDice(seed)
    const { samples, words } = randomSpeech(dice)
    const engine = createScriptedEngine({
      scripts: randomCrashes(dice),
      takeMs: 50 + dice.upTo(800),
      canFinalize,
    })
    const settings = { replayMsMax: 1_000, inFlightMsMax: 300 }
    const recorder = await recordEngines({ engines: [engine], settings })
    await recorder.write(samples, () => 1 + dice.upTo(3_200))
    const { stats } = await recorder.end()

    const transcribed = recorder.finals().flatMap((final) => final.words.map(({ word }) => word))
    const missing = words.filter(({ word }) => !transcribed.includes(word))
    const isListed = missing.every(({ startMs, endMs }) =>
      stats.gaps.some((gap) => gap.startMs < endMs && gap.endMs > startMs),
    )
    expect(isListed, `seed ${seed}`).toBe(true)
    expect(transcribed, `seed ${seed}`).toEqual(
      words.filter((word) => !missing.includes(word)).map(({ word }) => word),
    )
    const lost = recorder.of('warning').filter(({ code }) => code === 'audio_lost')
    const reportedMs = lost.reduce((sum, { details }) => sum + Number(details['speech_ms']), 0)
    expect(reportedMs, `seed ${seed}`).toBeLessThanOrEqual(stats.untranscribedMs)
    // Speech is detected in steps of 20 ms.
    const inexactMs = stats.gaps.length * 40
    const isExact = Math.abs(stats.untranscribedMs - missing.length * 100) <= inexactMs
    expect(isExact, `seed ${seed}: ${stats.untranscribedMs} ms`).toBe(true)
    lostMs += stats.untranscribedMs
  }
  return lostMs
}

/** About twenty seconds of utterances, with pauses that an energy detector finds. */
function randomSpeech(dice: Dice) {
  const utterances = Array.from({ length: 5 + dice.upTo(4) }, () => ({
    silenceMs: 10 * (45 + dice.upTo(120)),
    words: 1 + dice.upTo(30),
  }))
  return speak(utterances, 10 * dice.upTo(100))
}

function randomCrashes(dice: Dice): Script[] {
  return Array.from({ length: dice.upTo(6) }, () => ({ crashAtMs: dice.upTo(9_000) }))
}

type Recorder = Awaited<ReturnType<typeof recordEngines>>

/** Sends occasional finalize requests between utterances; returns their ids. */
async function writeAndFinalize(
  recorder: Recorder,
  samples: Int16Array,
  dice: Dice,
): Promise<string[]> {
  const ids: string[] = []
  const pieceOf = () => {
    const length = 1 + dice.upTo(3_200)
    if (dice.upTo(60) === 0) {
      ids.push(`f${ids.length}`)
      recorder.recognition.finalize(ids.at(-1) ?? '')
    }
    return length
  }
  await recorder.write(samples, pieceOf)
  return ids
}
