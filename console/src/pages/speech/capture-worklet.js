/** Runs on the audio thread: mixes to one channel and passes on 16-bit samples, 50 ms at a time. */
class Capture extends AudioWorkletProcessor {
  samples = new Int16Array(Math.round(sampleRate / 20))
  filled = 0
  isPaused = false

  constructor() {
    super()
    // What was heard before a pause or the end goes out, then null.
    this.port.onmessage = ({ data }) => {
      this.isPaused = data === 'pause'
      if (!this.isPaused) return
      this.flush()
      this.port.postMessage(null)
    }
  }

  process([channels]) {
    if (this.isPaused) return true
    const [first] = channels
    for (let at = 0; at < (first?.length ?? 0); at++) {
      let sum = 0
      for (const channel of channels) sum += channel[at]
      const level = Math.max(-1, Math.min(1, sum / channels.length))
      this.samples[this.filled++] = Math.round(level * 32_767)
      if (this.filled === this.samples.length) this.flush()
    }
    return true
  }

  flush() {
    if (this.filled === 0) return
    this.port.postMessage(this.samples.slice(0, this.filled))
    this.filled = 0
  }
}

registerProcessor('capture', Capture)
