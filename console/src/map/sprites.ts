/** Ships as small pictures that are written into a buffer pixel by pixel: thousands take a few milliseconds, on any machine. */
const TURNS = 48;
const FINE = 4;

interface Sprite {
  radius: number;
  cover: Uint8Array;
}

/** How much of each pixel a shape covers; a ship is an arrow in its course, or a dot where that is not known. */
export class Sprites {
  private readonly made = new Map<number, Sprite>();

  constructor(private readonly size: number) {}

  find(course: number | null): Sprite {
    const turn = course === null ? -1 : Math.round((((course % 360) + 360) % 360) / (360 / TURNS)) % TURNS;
    let found = this.made.get(turn);
    if (!found) {
      found = this.make(turn);
      this.made.set(turn, found);
    }
    return found;
  }

  private make(turn: number): Sprite {
    const radius = Math.ceil(this.size * 1.4) + 1;
    const side = radius * 2 + 1;
    const cover = new Uint8Array(side * side);
    const isInside = turn < 0 ? this.makeDot() : this.makeArrow((turn * 2 * Math.PI) / TURNS);
    for (let y = 0; y < side; y++) {
      for (let x = 0; x < side; x++) {
        let hits = 0;
        for (let at = 0; at < FINE * FINE; at++) {
          const dx = x - radius + ((at % FINE) + 0.5) / FINE - 0.5;
          const dy = y - radius + (Math.floor(at / FINE) + 0.5) / FINE - 0.5;
          if (isInside(dx, dy)) hits += 1;
        }
        cover[y * side + x] = (hits * 255) / (FINE * FINE);
      }
    }
    return { radius, cover };
  }

  private makeDot(): (x: number, y: number) => boolean {
    const limit = (this.size * 0.6) ** 2;
    return (x, y) => x * x + y * y <= limit;
  }

  private makeArrow(turn: number): (x: number, y: number) => boolean {
    const sin = Math.sin(turn);
    const cos = Math.cos(turn);
    const tip = this.size * 1.3;
    const tail = this.size * 0.8;
    const half = this.size * 0.7;
    return (x, y) => {
      const along = x * sin - y * cos;
      const across = x * cos + y * sin;
      return along >= -tail && along <= tip && Math.abs(across) <= (half * (tip - along)) / (tip + tail);
    };
  }
}

/** A picture of pixels, of which only the covered part is written. */
export class PixelBuffer {
  private image: ImageData;
  private words: Uint32Array;

  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    this.image = new ImageData(width, height);
    this.words = new Uint32Array(this.image.data.buffer);
  }

  clear(): void {
    this.words.fill(0);
  }

  /** `colour` is 0xBBGGRR. */
  stamp(sprite: Sprite, x: number, y: number, colour: number): void {
    const { radius, cover } = sprite;
    const side = radius * 2 + 1;
    const left = Math.round(x) - radius;
    const top = Math.round(y) - radius;
    const firstX = Math.max(0, -left);
    const lastX = Math.min(side, this.width - left);
    const lastY = Math.min(side, this.height - top);
    for (let row = Math.max(0, -top); row < lastY; row++) {
      const from = (top + row) * this.width + left;
      for (let column = firstX; column < lastX; column++) {
        const share = cover[row * side + column]!;
        if (share > this.words[from + column]! >>> 24) this.words[from + column] = ((share << 24) | colour) >>> 0;
      }
    }
  }

  show(context: CanvasRenderingContext2D): void {
    context.putImageData(this.image, 0, 0);
  }
}

/** `#rrggbb` as 0xBBGGRR. */
export function toWord(colour: string): number {
  const found = Number.parseInt(colour.slice(1), 16);
  return ((found & 0xff) << 16) | (found & 0xff00) | (found >> 16);
}
