import { dlopen, FFIType, ptr } from 'bun:ffi'

/** One utterance, with times in seconds from the first sample. */
type Utterance = {
  readonly text: string
  readonly words: readonly {
    readonly word: string
    readonly start: number
    readonly end: number
    readonly confidence: number
  }[]
}

export type Recogniser = {
  /** Processes samples; returns whether they contain speech. */
  take(samples: Int16Array): boolean
  /** The words of the open utterance so far. */
  hypothesis(): string
  /** Ends the open utterance and starts the next. */
  closeUtterance(): Utterance
}

export const sampleRateHz = 16_000
const framesPerSecond = 100
const modelFolder = '/usr/share/pocketsphinx/model/en-us'
const libraryOptions = {
  '-hmm': `${modelFolder}/en-us`,
  '-lm': `${modelFolder}/en-us.lm.bin`,
  '-dict': `${modelFolder}/cmudict-en-us.dict`,
  '-samprate': String(sampleRateHz),
}

/** The recogniser of Debian's libpocketsphinx3 with the model of pocketsphinx-en-us. */
export function createRecogniser(): Recogniser {
  const { base, sphinx } = openLibraries()
  // Otherwise it logs all of its settings.
  base.err_set_logfile(text('/dev/null'))
  const words = ['sluice', ...Object.entries(libraryOptions).flat()].map(text)
  const list = new BigUint64Array(words.map((word) => BigInt(ptr(word))))
  const settings = base.cmd_ln_parse_r(null, sphinx.ps_args(), words.length, list, 1)
  const decoder = sphinx.ps_init(settings)
  if (decoder === null) throw new Error(`no model could be loaded from ${modelFolder}`)
  const chances = sphinx.ps_get_logmath(decoder)
  const first = new Int32Array(1)
  const last = new Int32Array(1)

  const hypothesis = () => sphinx.ps_get_hyp(decoder, null) ?? ''
  const segments = () => {
    const found: Utterance['words'][number][] = []
    let segment = sphinx.ps_seg_iter(decoder)
    for (; segment !== null; segment = sphinx.ps_seg_next(segment)) {
      sphinx.ps_seg_frames(segment, first, last)
      const chance = sphinx.ps_seg_prob(segment, null, null, null)
      found.push({
        word: sphinx.ps_seg_word(segment) ?? '',
        start: (first[0] ?? 0) / framesPerSecond,
        end: ((last[0] ?? 0) + 1) / framesPerSecond,
        confidence: Math.min(1, base.logmath_exp(chances, chance)),
      })
    }
    return found
  }

  sphinx.ps_start_stream(decoder)
  sphinx.ps_start_utt(decoder)
  return {
    take(samples) {
      sphinx.ps_process_raw(decoder, samples, samples.length, 0, 0)
      return sphinx.ps_get_in_speech(decoder) !== 0
    },
    hypothesis,
    closeUtterance() {
      sphinx.ps_end_utt(decoder)
      const utterance = { text: hypothesis(), words: segments().filter(isWord).map(withoutVariant) }
      sphinx.ps_start_utt(decoder)
      return utterance
    },
  }
}

function openLibraries() {
  const { cstring, f64, i32, ptr: pointer, u64, u8, void: nothing } = FFIType
  const base = dlopen('libsphinxbase.so.3', {
    cmd_ln_parse_r: { args: [pointer, pointer, i32, pointer, i32], returns: pointer },
    err_set_logfile: { args: [cstring], returns: i32 },
    logmath_exp: { args: [pointer, i32], returns: f64 },
  })
  const sphinx = dlopen('libpocketsphinx.so.3', {
    ps_args: { args: [], returns: pointer },
    ps_init: { args: [pointer], returns: pointer },
    ps_start_stream: { args: [pointer], returns: i32 },
    ps_start_utt: { args: [pointer], returns: i32 },
    ps_end_utt: { args: [pointer], returns: i32 },
    ps_process_raw: { args: [pointer, pointer, u64, i32, i32], returns: i32 },
    ps_get_in_speech: { args: [pointer], returns: u8 },
    ps_get_hyp: { args: [pointer, pointer], returns: cstring },
    ps_get_logmath: { args: [pointer], returns: pointer },
    ps_seg_iter: { args: [pointer], returns: pointer },
    ps_seg_next: { args: [pointer], returns: pointer },
    ps_seg_word: { args: [pointer], returns: cstring },
    ps_seg_frames: { args: [pointer, pointer, pointer], returns: nothing },
    ps_seg_prob: { args: [pointer, pointer, pointer, pointer], returns: i32 },
  })
  return { base: base.symbols, sphinx: sphinx.symbols }
}

/** Texts are never freed, because the library keeps pointers to them. */
const kept: Buffer[] = []

function text(value: string): Buffer {
  const bytes = Buffer.from(`${value}\0`)
  kept.push(bytes)
  return bytes
}

/** Silence and noise have names in brackets. */
function isWord({ word }: { word: string }): boolean {
  return word !== '' && !/^[<[]/.test(word)
}

/** The second pronunciation of "and" is called "and(2)". */
function withoutVariant<T extends { word: string }>(segment: T): T {
  return { ...segment, word: segment.word.replace(/\(\d+\)$/, '') }
}
