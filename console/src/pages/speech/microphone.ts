import worklet from './capture-worklet.js' with { type: 'file' }

export type Microphone = {
  readonly sampleRateHz: number
  /** Resolves when all samples from before the pause were delivered. */
  pause(): Promise<void>
  resume(): void
  /** Delivers the last samples, then releases the device. */
  close(): Promise<void>
}

type MicrophoneOptions = {
  /** Null: the default of the browser. */
  readonly deviceId: string | null
  readonly onSamples: (samples: Int16Array) => void
  /** The device was unplugged, or its permission withdrawn. */
  readonly onLost: () => void
}

/** What engines work with; browsers that cannot convert record at the rate of the device. */
const sampleRateHz = 16_000
/** A page that is starved of processor time gets its last samples late; a dead audio thread sends none. */
const flushMsMax = 10_000

/** Why there is no microphone, as a key of the texts. */
export class MicrophoneError extends Error {
  override readonly name = 'MicrophoneError'
  readonly reason: 'insecure' | 'denied' | 'missing' | 'busy'

  constructor(reason: MicrophoneError['reason'], options?: ErrorOptions) {
    super(reason, options)
    this.reason = reason
  }
}

export async function openMicrophone(options: MicrophoneOptions): Promise<Microphone> {
  const stream = await openStream(options.deviceId)
  try {
    return await record(stream, options)
  } catch (error) {
    for (const track of stream.getTracks()) track.stop()
    throw error
  }
}

/** The microphones; their names are empty until one was allowed. */
export async function listMicrophones(): Promise<readonly MediaDeviceInfo[]> {
  const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? []
  return devices.filter(({ kind, deviceId }) => kind === 'audioinput' && deviceId !== '')
}

async function openStream(deviceId: string | null): Promise<MediaStream> {
  // Browsers offer no microphone to pages that came over http from another machine.
  if (navigator.mediaDevices === undefined) throw new MicrophoneError('insecure')
  const audio = { channelCount: 1, ...(deviceId === null ? {} : { deviceId: { exact: deviceId } }) }
  try {
    return await navigator.mediaDevices.getUserMedia({ audio })
  } catch (cause) {
    const { name } = cause as DOMException
    if (name === 'NotAllowedError' || name === 'SecurityError') {
      throw new MicrophoneError('denied', { cause })
    }
    const isMissing = name === 'NotFoundError' || name === 'OverconstrainedError'
    throw new MicrophoneError(isMissing ? 'missing' : 'busy', { cause })
  }
}

async function record(
  stream: MediaStream,
  { onSamples, onLost }: MicrophoneOptions,
): Promise<Microphone> {
  const { context, source } = connect(stream)
  try {
    await context.audioWorklet.addModule(new URL(worklet, import.meta.url))
    await context.resume()
  } catch (error) {
    void context.close()
    throw error
  }
  const node = new AudioWorkletNode(context, 'capture', { numberOfOutputs: 0 })
  const pauses: (() => void)[] = []
  node.port.onmessage = ({ data }: MessageEvent<Int16Array | null>) => {
    if (data === null) pauses.shift()?.()
    else onSamples(data)
  }
  const pause = async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    pauses.push(resolve)
    node.port.postMessage('pause')
    const timer = setTimeout(resolve, flushMsMax)
    await promise
    clearTimeout(timer)
  }
  source.connect(node)
  for (const track of stream.getTracks()) track.addEventListener('ended', onLost)
  return {
    sampleRateHz: context.sampleRate,
    pause,
    resume: () => node.port.postMessage('resume'),
    async close() {
      await pause()
      source.disconnect()
      for (const track of stream.getTracks()) track.stop()
      await context.close()
    },
  }
}

function connect(stream: MediaStream) {
  for (const rate of [sampleRateHz, undefined]) {
    const context = new AudioContext(rate === undefined ? {} : { sampleRate: rate })
    try {
      return { context, source: context.createMediaStreamSource(stream) }
    } catch (error) {
      void context.close()
      // Firefox connects only at the rate of the device.
      if (rate === undefined) throw error
    }
  }
  throw new MicrophoneError('busy')
}
