/**
 * The part of the WebAssembly API that Troupe uses. The compiler ships it only together with the browser's
 * whole DOM, whose globals (`name`, `event`, `status`…) would hide misspelled variables in server code.
 */
declare namespace WebAssembly {
  interface MemoryDescriptor {
    initial: number;
    maximum?: number;
    shared?: boolean;
  }

  /** Linear memory, counted in pages of 64 KiB. With `shared` its buffer is a SharedArrayBuffer. */
  class Memory {
    constructor(descriptor: MemoryDescriptor);
    readonly buffer: ArrayBuffer | SharedArrayBuffer;
    grow(pages: number): number;
  }

  /** Compiled code without state; can be posted to a worker. */
  class Module {
    constructor(bytes: BufferSource);
    static exports(module: Module): { name: string; kind: string }[];
    static imports(module: Module): { module: string; name: string; kind: string }[];
  }

  type BufferSource = ArrayBufferView | ArrayBuffer;
  type ImportValue = Memory | Global | ((...values: number[]) => number | undefined) | ((...values: number[]) => void) | number;
  type Imports = Record<string, Record<string, ImportValue>>;

  class Global {
    constructor(descriptor: { value: 'i32' | 'i64' | 'f32' | 'f64'; mutable?: boolean }, value?: number);
    value: number;
  }

  class Instance {
    constructor(module: Module, imports?: Imports);
    readonly exports: Record<string, unknown>;
  }

  class RuntimeError extends Error {}
  class CompileError extends Error {}
  class LinkError extends Error {}

  function compile(bytes: BufferSource): Promise<Module>;
  function instantiate(module: Module, imports?: Imports): Promise<Instance>;
}
