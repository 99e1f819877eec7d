// Makes a context deterministic and bounded: deletes what is not listed, guards what is, freezes the rest.
//
// The engine counts steps where bytecode jumps back or calls, and not inside its built-in functions. A built-in function
// that may run long (an array of 4,294,967,295 absent items, a search in long texts) is therefore replaced by one that
// charges its work first. So are the iterators of arrays and texts, as `[...a]` is one step of the engine. The value of this
// script has the functions that reset the charge, before an evaluation and before each call of a script, and the one that
// charges a copy or an enumeration of an object.
(function (work, evaluation, longest) {
    "use strict";
    const { getOwnPropertyNames, getOwnPropertySymbols, getPrototypeOf, defineProperty, freeze } = Object;
    const isArray = Array.isArray;
    const global = globalThis;
    // What is left of this call, of what it was given, and of the evaluation.
    let left = work, given = work, rest = evaluation;
    const charge = (units) => {
        if (!((left -= units) >= 0)) throw new RangeError("the script does too much work in built-in functions");
    };
    // Bound, because the properties of functions are deleted below.
    const apply = Function.prototype.call.bind(Function.prototype.apply);
    const remove = (owner, name) => {
        try {
            delete owner[name];
        } catch {
            throw new TypeError("cannot remove " + String(name));
        }
    };
    const put = (owner, name, value) => {
        delete owner[name];
        defineProperty(owner, name, { value, writable: true, configurable: true, enumerable: false });
    };
    const call = Function.prototype.call;
    // For functions to which an absent argument and an undefined one are the same.
    const guard = (owner, name, cost) => {
        const native = call.bind(owner[name]);
        put(owner, name, { [name](a, b) {
            charge(cost(this, a, b));
            return native(this, a, b);
        } }[name]);
    };
    const guardAll = (owner, name, cost) => {
        const native = owner[name];
        put(owner, name, { [name](...values) {
            charge(cost(this) + values.length);
            return apply(native, this, values);
        } }[name]);
    };
    // For work that shows in the result only.
    const after = (owner, name) => {
        const native = owner[name];
        put(owner, name, { [name](...values) {
            charge(20);
            let result;
            try {
                result = apply(native, this, values);
            } catch (error) {
                charge(work / 10);
                throw error;
            }
            charge(typeof result === "string" || isArray(result) ? result.length : 20);
            return result;
        } }[name]);
    };
    const keep = (owner, names) => {
        for (const name of getOwnPropertyNames(owner)) {
            if (!names.includes(name)) remove(owner, name);
        }
    };

    // Arrays: `this` must be a real array, whose length is data. Arrays within arrays are not flattened by built-in code.
    const array = Array.prototype;
    const size = (self) => {
        if (!isArray(self) || self.length > longest) throw new RangeError("an array of at most " + longest + " items is expected");
        return 8 + self.length;
    };
    // Its work does not grow with the array.
    const short = (self) => (size(self), 8);
    const ends = ["at", "pop"];
    for (const name of ends) guard(array, name, short);
    guardAll(array, "push", short);
    guard(array, "values", size);
    put(array, Symbol.iterator, array.values);
    const arrays = ["every", "filter", "find", "findIndex", "findLast", "findLastIndex", "forEach", "includes",
        "indexOf", "map", "reverse", "shift", "slice", "some"];
    for (const name of arrays) guard(array, name, size);
    const more = ["lastIndexOf", "reduce", "reduceRight", "splice", "unshift"];
    for (const name of more) guardAll(array, name, size);
    guard(array, "join", (self, by) => {
        const length = size(self);
        return length * (1 + (typeof by === "string" ? by.length : 1));
    });
    guard(array, "sort", (self) => 16 * size(self));
    put(array, "concat", function concat(...lists) {
        const result = [];
        for (const list of [this, ...lists]) {
            if (isArray(list)) {
                size(list);
                for (let at = 0; at < list.length; at++) result[result.length] = list[at];
            } else {
                result[result.length] = list;
            }
        }
        return result;
    });
    keep(array, [...arrays, ...ends, ...more, "push", "concat", "join", "length", "sort", "toString", "values"]);
    keep(Array, ["isArray", "prototype", "length", "name"]);

    // Texts.
    const text = String.prototype;
    const plain = (value) => {
        if (typeof value !== "string") throw new TypeError("a text is expected");
        return value.length;
    };
    // As `guard`, with the cost and its charge in place: scripts call these most, and each call of a function costs more
    // than the work of many of them.
    for (const name of ["at", "charAt", "charCodeAt", "codePointAt", "slice", "substring", "endsWith", "startsWith",
        "toLowerCase", "toUpperCase", "trim", "trimEnd", "trimStart"]) {
        const native = call.bind(text[name]);
        put(text, name, { [name](a, b) {
            if (typeof this !== "string") plain(this);
            if (!((left -= 1 + this.length / 8) >= 0)) charge(0);
            return native(this, a, b);
        } }[name]);
    }
    for (const name of ["includes", "indexOf", "lastIndexOf", "split"]) {
        const native = call.bind(text[name]);
        put(text, name, { [name](a, b) {
            if (typeof this !== "string" || typeof a !== "string") plain(this), plain(a);
            if (!((left -= 1 + (this.length * (1 + a.length)) / 8) >= 0)) charge(0);
            return native(this, a, b);
        } }[name]);
    }
    for (const name of ["replace", "replaceAll"]) {
        guard(text, name, (self, part, by) => 1 + (plain(self) * (1 + plain(part) + (typeof by === "function" ? 64 : plain(by)))) / 8);
    }
    guard(text, "repeat", (self, times) => 1 + (plain(self) * Number(times)) / 8);
    for (const name of ["padEnd", "padStart"]) guard(text, name, (self, to) => 1 + (plain(self) + Number(to)) / 8);
    guard(text, Symbol.iterator, (self) => 1 + plain(self));
    put(text, "concat", function concat(...texts) {
        let result = "" + this;
        for (const part of texts) result += part;
        return result;
    });
    keep(text, ["at", "charAt", "charCodeAt", "codePointAt", "concat", "endsWith", "includes", "indexOf", "lastIndexOf",
        "length", "padEnd", "padStart", "repeat", "replace", "replaceAll", "slice", "split", "startsWith", "substring",
        "toLowerCase", "toString", "toUpperCase", "trim", "trimEnd", "trimStart", "valueOf"]);
    keep(String, ["fromCharCode", "prototype", "length", "name"]);

    // Objects, numbers, JSON.
    for (const name of ["keys", "values", "entries", "fromEntries", "assign"]) after(Object, name);
    keep(Object, ["keys", "values", "entries", "fromEntries", "assign", "hasOwn", "prototype", "length", "name"]);
    keep(Object.prototype, ["hasOwnProperty", "toString", "valueOf"]);
    keep(Number, ["EPSILON", "MAX_SAFE_INTEGER", "MAX_VALUE", "MIN_SAFE_INTEGER", "MIN_VALUE", "NaN", "NEGATIVE_INFINITY",
        "POSITIVE_INFINITY", "isFinite", "isInteger", "isNaN", "isSafeInteger", "parseFloat", "parseInt", "prototype",
        "length", "name"]);
    keep(Number.prototype, ["toFixed", "toString", "valueOf"]);
    keep(Boolean.prototype, ["toString", "valueOf"]);
    delete Math.random;
    guard(JSON, "parse", (self, source) => 20 + (typeof source === "string" ? source.length : work));
    after(JSON, "stringify");
    keep(JSON, ["parse", "stringify"]);

    // No code from texts, no state that outlives a call, no clock, no chance.
    const generator = getPrototypeOf(function* () {});
    const iterator = getPrototypeOf(getPrototypeOf([][Symbol.iterator]()));
    const kept = [array, text, Object.prototype, Number.prototype, Boolean.prototype, Function.prototype, Symbol.prototype,
        generator, generator.prototype, iterator, getPrototypeOf([][Symbol.iterator]()),
        getPrototypeOf(""[Symbol.iterator]()), Error.prototype];
    keep(Function.prototype, ["length", "name"]);
    keep(iterator, []);
    keep(generator, ["prototype"]);
    const errors = ["Error", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError"];
    for (const name of errors) keep(global[name], ["prototype", "length", "name"]);
    for (const owner of kept) remove(owner, "constructor");
    for (const name of errors) remove(global[name].prototype, "constructor");

    const globals = ["Array", "Boolean", "Infinity", "JSON", "Math", "NaN", "Number", "Object", "String",
        "globalThis", "isFinite", "isNaN", "parseFloat", "parseInt", "undefined", ...errors];
    for (const name of getOwnPropertyNames(global)) {
        if (!globals.includes(name)) remove(global, name);
    }
    const frozen = (value) => {
        if (value === null || (typeof value !== "object" && typeof value !== "function")) return;
        freeze(value);
        for (const name of [...getOwnPropertyNames(value), ...getOwnPropertySymbols(value)]) {
            let part;
            try {
                part = value[name];
            } catch {
                continue;
            }
            if (part !== null && (typeof part === "object" || typeof part === "function")) freeze(part);
        }
    };
    for (const owner of kept) frozen(owner);
    for (const name of globals) {
        frozen(global[name]);
        if (typeof global[name] === "function") frozen(global[name].prototype);
    }
    freeze(global);
    return {
        begin() {
            rest = evaluation;
            left = given = work;
        },
        reset() {
            rest -= given - (left > 0 ? left : 0);
            left = given = rest < work ? (rest > 0 ? rest : 0) : work;
        },
        charge(value) {
            if (typeof value === "string") charge(value.length);
            // Inherited properties are enumerated as well.
            else if (value !== null && (typeof value === "object" || typeof value === "function")) {
                for (let one = value; one !== null; one = getPrototypeOf(one)) {
                    charge(4 * (1 + getOwnPropertyNames(one).length));
                }
            }
            return value;
        },
    };
})
