/** The sizes of a Whisper model. */
export type Dims = {
  readonly state: number
  readonly heads: number
  readonly encoderLayers: number
  readonly decoderLayers: number
  readonly vocab: number
}

export const textContext = 448

/** English models have no language tokens: everything after the text is one lower. */
export function specialTokens(vocab: number) {
  const isMultilingual = vocab >= 51_865
  const end = isMultilingual ? 50_257 : 50_256
  const start = end + 1
  const afterLanguages = start + 1 + 99
  return {
    isMultilingual,
    end_of_text: end,
    start,
    translate: afterLanguages,
    transcribe: afterLanguages + 1,
    sot_lm: afterLanguages + 2,
    sot_prev: afterLanguages + 3,
    no_speech: afterLanguages + 4,
    no_timestamps: afterLanguages + 5,
  }
}

/** In the order of their tokens. */
const languageCodes =
  'en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su'.split(
    ' ',
  )

export function metadataOf(
  { state, heads, encoderLayers, decoderLayers, vocab }: Dims,
  alignmentHeads: number,
): Readonly<Record<string, string | number>> {
  const { isMultilingual, end_of_text: end, start, ...special } = specialTokens(vocab)
  const firstLanguage = start + 1
  return {
    model_type: 'whisper',
    version: '1',
    maintainer: 'k2-fsa',
    n_mels: 80,
    n_audio_ctx: 1500,
    n_audio_state: state,
    n_audio_head: heads,
    n_audio_layer: encoderLayers,
    n_vocab: vocab,
    n_text_ctx: textContext,
    n_text_state: state,
    n_text_head: heads,
    n_text_layer: decoderLayers,
    n_alignment_heads: alignmentHeads,
    sot_sequence: isMultilingual ? [start, firstLanguage, special.transcribe].join(',') : start,
    all_language_tokens: languageCodes.map((_, at) => firstLanguage + at).join(','),
    all_language_codes: languageCodes.join(','),
    sot: start,
    sot_index: 0,
    eot: end,
    blank_id: 220,
    is_multilingual: isMultilingual ? 1 : 0,
    non_speech_tokens: '',
    no_speech: special.no_speech,
    transcribe: special.transcribe,
    translate: special.translate,
    sot_prev: special.sot_prev,
    sot_lm: special.sot_lm,
    no_timestamps: special.no_timestamps,
  }
}

/** One token a line: its bytes in base64, and its number. */
export function tokensFile(vocab: Readonly<Record<string, number>>, textEnd: number): string {
  const bytes = byteOfCharacter()
  return Object.entries(vocab)
    .filter(([, id]) => id < textEnd)
    .toSorted(([, one], [, other]) => one - other)
    .map(([token, id]) => {
      const content = Uint8Array.from([...token].map((letter) => bytes.get(letter) ?? 0))
      return `${content.toBase64()} ${id}\n`
    })
    .join('')
}

/** GPT-2 writes each byte as a printable character. */
function byteOfCharacter(): ReadonlyMap<string, number> {
  const isPrintable = (byte: number) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
  let moved = 256
  return new Map(
    Array.from({ length: 256 }, (_, byte) => [
      String.fromCharCode(isPrintable(byte) ? byte : moved++),
      byte,
    ]),
  )
}
