import { StartError } from './children.ts'
import { sampleRateHz } from './spoken-tones.ts'

export const encodings = ['pcm_int16', 'opus', 'mp3'] as const
export type Encoding = (typeof encodings)[number]

/** Constant bit rates, so that equal parts of a file last equally long. */
const codecs = {
  opus: '-c:a libopus -b:a 32k -application voip -vbr off -page_duration 20000 -f ogg',
  mp3: '-c:a libmp3lame -b:a 32k -write_xing 0 -f mp3',
}

/** The query parameters of `/v1/stt` for this encoding. */
export function queryOf(encoding: Encoding): string {
  const rate = encoding === 'pcm_int16' ? `&sample_rate_hz=${sampleRateHz}` : ''
  return `encoding=${encoding}${rate}`
}

/** Encodes frames of PCM with ffmpeg, and divides the result into as many parts. */
export async function encodeFrames(
  frameAt: (frame: number) => Uint8Array,
  frames: number,
  encoding: keyof typeof codecs,
): Promise<(frame: number) => Uint8Array> {
  if (Bun.which('ffmpeg') === null) throw new StartError('the encodings need ffmpeg')
  const pcm = new Blob(Array.from({ length: frames }, (_, frame) => frameAt(frame).slice()))
  const input = `-v error -f s16le -ar ${sampleRateHz} -ac 1 -i pipe:0`
  const command = ['ffmpeg', ...input.split(' '), ...codecs[encoding].split(' '), 'pipe:1']
  const ffmpeg = Bun.spawn(command, { stdin: pcm, stdout: 'pipe', stderr: 'inherit' })
  const bytes = await new Response(ffmpeg.stdout).bytes()
  if ((await ffmpeg.exited) !== 0) throw new StartError('ffmpeg failed')
  const partAt = (frame: number) => Math.floor((frame * bytes.length) / frames)
  return (frame) => bytes.subarray(partAt(frame), partAt(frame + 1))
}
