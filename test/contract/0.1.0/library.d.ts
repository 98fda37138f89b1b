export declare const receiver: typeof import("@paybell/partner").receiver;
